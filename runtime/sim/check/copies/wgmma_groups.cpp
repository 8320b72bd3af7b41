// Groups of wgmma end where a warp waits for them.
#include "sim/check/copies/wgmma_groups.h"

#include "sim/exec/warp/warpgroup.h"

#include <algorithm>
#include <span>
#include <utility>

namespace kernwright::sim {

void WgmmaGroups::close(std::uint32_t warp) {
  Groups& warp_groups = warps_[warp];
  warp_groups.closed.push_back(std::exchange(warp_groups.open, 0));
}

bool WgmmaGroups::wait(std::uint32_t warp, std::size_t left, std::uint32_t tick,
                       AsyncReads& reads) {
  Groups& warp_groups = warps_[warp];
  if (warp_groups.count() <= left) return false;
  const std::size_t target = warp_groups.count() - left;
  const std::span warpgroup(warps_.data() + warp / kWarpgroupWarps * kWarpgroupWarps,
                            kWarpgroupWarps);
  // A waiting thread knows that the parts of all four warps are done.
  for (std::size_t g = warp_groups.waited; g < target; ++g) {
    for (const Groups& groups : warpgroup) {
      if (g < groups.dropped || g >= groups.count()) continue;
      const std::uint32_t number = groups.closed[g - groups.dropped];
      if (number != 0) reads.end(number, warp % kWarpgroupWarps, tick);
    }
  }
  warp_groups.waited = std::max(warp_groups.waited, target);
  std::size_t done = warp_groups.waited;
  for (const Groups& groups : warpgroup) done = std::min(done, groups.waited);
  for (Groups& groups : warpgroup) {
    const std::size_t count = std::min(done - groups.dropped, groups.closed.size());
    groups.closed.erase(groups.closed.begin(),
                        groups.closed.begin() + static_cast<std::ptrdiff_t>(count));
    groups.dropped += count;
  }
  return true;
}

}  // namespace kernwright::sim
