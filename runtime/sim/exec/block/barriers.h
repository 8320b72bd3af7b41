// The sixteen named barriers of a block, counted per thread as on Volta and later.
#pragma once

#include "sim/exec/warp/warp.h"

#include <array>
#include <cstdint>
#include <vector>

namespace kernwright::sim {

inline constexpr std::uint32_t kBarrierCount = 16;

struct Barriers {
  struct One {
    std::vector<std::uint32_t> arrived;  ///< per warp: lanes that came, waiting or not
    std::vector<std::uint32_t> votes;    ///< per warp: lanes whose predicate holds (bar.red)
    std::uint32_t threads = 0;           ///< expected; 0 = every live thread of the block
    bool reduces = false;                ///< a bar.red is among the arrivals
  };
  std::array<One, kBarrierCount> all;
  std::uint32_t open = 0;   ///< bit i: a thread came to barrier i since its last release
  std::uint32_t warps = 0;  ///< of the block

  /// Forgets every arrival; a block of `warps` warps begins.
  void reset(std::uint32_t warps);

  /// Lets go all threads at a complete barrier. True when there was one. Without a thread count a
  /// barrier is complete when every live thread came. With one, threads are counted; a warp counts
  /// as 32 once all its live lanes came, as the hardware counts whole warps.
  bool release(Block& block);
};

}  // namespace kernwright::sim
