// Values that shuffles gave from lanes which take no part, and who uses them.
#include "base/format.h"
#include "sim/check/block_check.h"
#include "sim/code/program.h"
#include "sim/exec/cluster.h"

#include <bit>

namespace kernwright::sim {

const LostSource* BlockCheck::lost(const Warp& warp, const std::vector<std::uint32_t>& values,
                                   int lane) const {
  for (const std::uint32_t source : values) {
    const auto known = lost_.find({warp.frame, source});
    if (known == lost_.end() || (known->second.lanes >> lane & 1) == 0) continue;
    return &known->second.from[static_cast<std::size_t>(lane)];
  }
  return nullptr;
}

template <typename Of>
void BlockCheck::set_lost(const Warp& warp, std::uint32_t source, const Of& of) {
  LostValue value;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::optional<LostSource> from = of(lane);
    if (!from) continue;
    value.lanes |= 1u << lane;
    value.from[static_cast<std::size_t>(lane)] = *from;
  }
  const std::pair key{warp.frame, source};
  const auto known = lost_.find(key);
  if (known == lost_.end()) {
    if (value.lanes != 0) lost_.emplace(key, value);
  } else {
    known->second.lanes &= ~warp.mask;
    known->second.lanes |= value.lanes;
    for (std::uint32_t m = value.lanes; m != 0; m &= m - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(m));
      known->second.from[lane] = value.from[lane];
    }
    if (known->second.lanes == 0) lost_.erase(known);
  }
  note_doubts();
}

void BlockCheck::shuffle(const Op* op, Warp& warp, const ShuffleSources& read) {
  if (read.lost == 0 && lost_.empty()) return;
  const std::uint32_t index = warp.op_index(op);
  const auto known = launch_.program.flow.find(index);
  if (known == launch_.program.flow.end()) return;  // nobody can say who uses it
  const FlowStep& step = known->second;
  set_lost(warp, step.source, [&](int lane) -> std::optional<LostSource> {
    const auto i = static_cast<std::size_t>(lane);
    const std::int32_t from = read.from[i];
    if ((read.lost >> lane & 1) != 0) {
      const bool is_member = (read.members[i] >> from & 1) != 0;
      return LostSource{index, static_cast<std::int8_t>(lane), static_cast<std::int8_t>(from),
                        is_member, read.members[i]};
    }
    const LostSource* const passed_on = lost(warp, step.values, from);
    return passed_on == nullptr ? std::nullopt : std::optional(*passed_on);
  });
}

void BlockCheck::follow_shuffles(const Op* op, Warp& warp) {
  if (lost_.empty()) return;
  const auto known = launch_.program.flow.find(warp.op_index(op));
  if (known == launch_.program.flow.end() || known->second.role == FlowRole::shuffle) return;
  const FlowStep& step = known->second;
  if (step.role == FlowRole::use) {
    for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
      const int lane = std::countr_zero(m);
      if (const LostSource* const from = lost(warp, step.values, lane))
        report_lost(op, warp, lane, *from);
    }
    return;
  }
  const std::uint32_t chosen = step.role == FlowRole::choice ? warp.pred(op->c) : ~0u;
  set_lost(warp, step.source, [&](int lane) -> std::optional<LostSource> {
    const auto& picked = (chosen >> lane & 1) != 0 ? step.values : step.others;
    const LostSource* const from = lost(warp, picked, lane);
    return from == nullptr ? std::nullopt : std::optional(*from);
  });
}

void BlockCheck::report_lost(const Op* op, const Warp& warp, int lane, const LostSource& from) {
  const std::uint64_t key =
      std::uint64_t{9} << 60 | std::uint64_t{from.op} << 28 | warp.op_index(op);
  if (seen(key)) return;
  Finding finding = describe(warp.code + from.op, warp, from.reader, FaultKind::sync);
  finding.what = "shuffle";
  const auto& shape = warp.worker->launch->block;
  const std::uint32_t threads = shape[0] * shape[1] * shape[2];
  const std::uint32_t thread =
      warp.index * std::uint32_t{kLanes} + static_cast<unsigned>(from.lane);
  std::string why = "which has exited";
  finding.hint =
      "what is read is undefined: let all lanes of the warp come to the shuffle, with a condition "
      "around what they load and store in place of an early return";
  if (!from.is_member) {
    why = format("which its member mask {:#010x} leaves out", from.members);
    finding.hint =
        "what is read is undefined: read from lanes of the mask only, or use coalesced_threads() "
        "of cooperative_groups, which numbers them";
  } else if (thread >= threads) {
    why = format("and the block of {} threads has none there", threads);
    finding.hint =
        "what is read is undefined: launch whole warps, or read from lanes that there are only";
  }
  finding.fault.message =
      format("lane {} reads from lane {} in a shuffle, {}, and the value is used",
             static_cast<int>(from.reader), static_cast<int>(from.lane), why);
  OtherAccess there = describe_other(warp.op_index(op));
  there.what = "use";
  there.block = finding.fault.block;
  const auto l = static_cast<std::size_t>(lane);
  there.thread = {warp.tid[0][l], warp.tid[1][l], warp.tid[2][l]};
  finding.other = std::move(there);
  keep(key, std::move(finding));
}

}  // namespace kernwright::sim
