// Groups of wgmma in a block, with the reads of shared memory of each.
#pragma once

#include "sim/check/copies/async_reads.h"
#include "sim/check/order/clock.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernwright::sim {

class WgmmaGroups {
 public:
  void clear() { warps_.fill({}); }
  /// Number of the AsyncRead of the warp's open group; 0: there is none.
  std::uint32_t& open(std::uint32_t warp) { return warps_[warp].open; }
  void close(std::uint32_t warp);
  /// The warp waits, at this tick, for all groups of its warpgroup but the last `left`. False if
  /// there are no more.
  bool wait(std::uint32_t warp, std::size_t left, std::uint32_t tick, AsyncReads& reads);

 private:
  struct Groups {
    std::uint32_t open = 0;
    std::vector<std::uint32_t> closed;  ///< but for those that all four warps waited for
    std::size_t dropped = 0, waited = 0;
    std::size_t count() const { return dropped + closed.size(); }
  };

  std::array<Groups, kMostWarps> warps_;
};

}  // namespace kernwright::sim
