// Which lanes' values come from nobody.
#include "sim/check/flow/lost_values.h"

namespace kernwright::sim {

const LostSource* LostValues::find(const Warp& warp, const std::vector<std::uint32_t>& sources,
                                   int lane) const {
  for (const std::uint32_t source : sources) {
    const auto known = all_.find({warp.frame, source});
    if (known == all_.end() || (known->second.lanes >> lane & 1) == 0) continue;
    return &known->second.from[static_cast<std::size_t>(lane)];
  }
  return nullptr;
}

void LostValues::put(const Key& key, std::uint32_t mask, const Value& value) {
  const auto known = all_.find(key);
  if (known == all_.end()) {
    if (value.lanes != 0) all_.emplace(key, value);
    return;
  }
  known->second.lanes &= ~mask;
  known->second.lanes |= value.lanes;
  for (std::uint32_t m = value.lanes; m != 0; m &= m - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(m));
    known->second.from[lane] = value.from[lane];
  }
  if (known->second.lanes == 0) all_.erase(known);
}

}  // namespace kernwright::sim
