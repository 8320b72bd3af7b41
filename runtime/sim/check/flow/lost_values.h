// Values that shuffles gave from lanes which take no part.
#pragma once

#include "sim/check/flow/shuffle_flow.h"
#include "sim/exec/warp/warp.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace kernwright::sim {

/// By frame and FlowStep::source: lanes whose value comes from a shuffle that read from nobody.
class LostValues {
 public:
  bool empty() const noexcept { return all_.empty(); }
  void clear() { all_.clear(); }

  /// Of the lane's values from these sources the first that is lost; null: none is.
  const LostSource* find(const Warp& warp, const std::vector<std::uint32_t>& sources,
                         int lane) const;
  /// `of(lane)` says where the active lanes' new value comes from if it is lost.
  template <typename Of>
  void set(const Warp& warp, std::uint32_t source, const Of& of) {
    Value value;
    for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
      const int lane = std::countr_zero(m);
      const std::optional<LostSource> from = of(lane);
      if (!from) continue;
      value.lanes |= 1u << lane;
      value.from[static_cast<std::size_t>(lane)] = *from;
    }
    put({warp.frame, source}, warp.mask, value);
  }

 private:
  using Key = std::pair<const std::byte*, std::uint32_t>;
  struct Value {
    std::uint32_t lanes = 0;
    std::array<LostSource, kLanes> from;
  };

  /// Those of `mask` get a new value.
  void put(const Key& key, std::uint32_t mask, const Value& value);

  std::map<Key, Value> all_;
};

}  // namespace kernwright::sim
