// The order of a block's warps under a seed.
#pragma once

#include "sim/exec/warp/warp.h"

#include <cstdint>
#include <vector>

namespace kernwright::sim {

class RandomSchedule {
 public:
  explicit RandomSchedule(std::uint32_t warps) : warps_(warps) {}
  /// A block begins.
  void begin(std::uint64_t seed, std::uint64_t block) noexcept;
  /// Whether the warp lets others go first. Then it parks before `op`.
  bool pause(const Op* op, Warp& warp);
  /// The warps in the order of their next run.
  const std::uint32_t* warp_order();

 private:
  std::uint32_t warps_ = 0;
  std::uint64_t state_ = 0;
  std::vector<std::uint32_t> order_;
};

}  // namespace kernwright::sim
