// Tracks lanes with values from no lane.
#include "sim/check/flow/lost_values.h"

#include <bit>

namespace kernwright::sim {

void LostValues::clear() {
  all_.clear();
  slow_.set(SlowPath::kLost, false);
}

/// Null: the uses of the op's result are unknown.
const FlowStep* LostValues::find_step(std::uint32_t op) const {
  const auto& flow = place_.launch.program.flow;
  const auto known = flow.find(op);
  return known == flow.end() ? nullptr : &known->second;
}

/// The first lost one of the lane's values from these sources; null: none.
const LostSource* LostValues::find(const Warp& warp, const std::vector<std::uint32_t>& sources,
                                   int lane) const {
  for (const std::uint32_t source : sources) {
    const auto known = all_.find({warp.frame, source});
    if (known == all_.end() || (known->second.lanes >> lane & 1) == 0) continue;
    return &known->second.from[static_cast<std::size_t>(lane)];
  }
  return nullptr;
}

/// The active lanes get a new value; it is lost for the lanes of `value`.
void LostValues::put(const Warp& warp, std::uint32_t source, const Value& value) {
  Value& known = all_[{warp.frame, source}];
  known.lanes &= ~warp.mask;
  for (std::uint32_t m = value.lanes; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    known.add(lane, value.from[static_cast<std::size_t>(lane)]);
  }
  if (known.lanes == 0) all_.erase({warp.frame, source});
  slow_.set(SlowPath::kLost, !all_.empty());
}

void LostValues::shuffle(const Op* op, const Warp& warp, const ShuffleSources& read) {
  if (read.lost == 0 && all_.empty()) return;
  const std::uint32_t index = warp.op_index(op);
  const FlowStep* const step = find_step(index);
  if (step == nullptr) return;
  Value value;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const auto i = static_cast<std::size_t>(lane);
    const std::int32_t from = read.from[i];
    if ((read.lost >> lane & 1) != 0) {
      const bool is_member = (read.members[i] >> from & 1) != 0;
      value.add(lane, {index, static_cast<std::int8_t>(lane), static_cast<std::int8_t>(from),
                       is_member, read.members[i]});
    } else if (const LostSource* const passed_on = find(warp, step->values, from)) {
      value.add(lane, *passed_on);
    }
  }
  put(warp, step->source, value);
}

void LostValues::follow(const Op* op, const Warp& warp) {
  const FlowStep* const step = all_.empty() ? nullptr : find_step(warp.op_index(op));
  if (step == nullptr || step->role == FlowRole::shuffle) return;
  const bool uses = step->role == FlowRole::use;
  const std::uint32_t chosen = step->role == FlowRole::choice ? warp.pred(op->c) : ~0u;
  Value value;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const LostSource* const from =
        find(warp, (chosen >> lane & 1) != 0 ? step->values : step->others, lane);
    if (from == nullptr) continue;
    value.add(lane, *from);
    if (uses) findings_.lost(op, warp, lane, *from);
  }
  if (!uses) put(warp, step->source, value);
}

}  // namespace kernwright::sim
