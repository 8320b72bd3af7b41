// Values that shuffles gave from lanes which take no part, and who uses them.
#include "base/format.h"
#include "sim/check/block_check.h"
#include "sim/code/program.h"
#include "sim/exec/block/cluster.h"

#include <bit>

namespace kernwright::sim {

void BlockCheck::shuffle(const Op* op, Warp& warp, const ShuffleSources& read) {
  if (read.lost == 0 && lost_.empty()) return;
  const std::uint32_t index = warp.op_index(op);
  const auto known = where.launch.program.flow.find(index);
  if (known == where.launch.program.flow.end()) return;  // nobody can say who uses it
  const FlowStep& step = known->second;
  lost_.set(warp, step.source, [&](int lane) -> std::optional<LostSource> {
    const auto i = static_cast<std::size_t>(lane);
    const std::int32_t from = read.from[i];
    if ((read.lost >> lane & 1) != 0) {
      const bool is_member = (read.members[i] >> from & 1) != 0;
      return LostSource{index, static_cast<std::int8_t>(lane), static_cast<std::int8_t>(from),
                        is_member, read.members[i]};
    }
    const LostSource* const passed_on = lost_.find(warp, step.values, from);
    return passed_on == nullptr ? std::nullopt : std::optional(*passed_on);
  });
  note_followed();
}

void BlockCheck::follow_shuffles(const Op* op, Warp& warp) {
  if (lost_.empty()) return;
  const auto known = where.launch.program.flow.find(warp.op_index(op));
  if (known == where.launch.program.flow.end() || known->second.role == FlowRole::shuffle) return;
  const FlowStep& step = known->second;
  if (step.role == FlowRole::use) {
    for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
      const int lane = std::countr_zero(m);
      if (const LostSource* const from = lost_.find(warp, step.values, lane))
        findings.lost(op, warp, lane, *from);
    }
    return;
  }
  const std::uint32_t chosen = step.role == FlowRole::choice ? warp.pred(op->c) : ~0u;
  lost_.set(warp, step.source, [&](int lane) -> std::optional<LostSource> {
    const auto& picked = (chosen >> lane & 1) != 0 ? step.values : step.others;
    const LostSource* const from = lost_.find(warp, picked, lane);
    return from == nullptr ? std::nullopt : std::optional(*from);
  });
  note_followed();
}

}  // namespace kernwright::sim
