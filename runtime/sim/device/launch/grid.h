// Runs all blocks of a launch over host threads.
#pragma once

#include "base/fault.h"
#include "sim/exec/block/stop_request.h"
#include "sim/exec/warp/warp.h"

#include <optional>
#include <span>
#include <string>

namespace kernwright::sim {

/// Called while the launching thread waits for others: they cannot detect the launch's stop
/// conditions.
inline void look(const LaunchContext& launch) noexcept {
  if (launch.stop != nullptr) static_cast<void>(launch.stop->is_due());
}

struct GridResult {
  std::optional<Fault> fault;  ///< of the block with the lowest linear index among those failed
  std::string printed;         ///< what device code printed, in block order
};

/// Runs the grid on up to `width` host threads, the caller's included. `launch.print` and its sink
/// are set here. Blocks start in the order of their linear index; those of a cluster
/// (`launch.cluster`, a divisor of the grid) start together and on one host thread. After a finding
/// no block or cluster behind it starts, while the ones before it still run: the same one is
/// reported for any number of threads. Throws the errors of BlockRunner's constructor.
/// `launch.accesses` takes the accesses of all blocks; null = no log. `processors` as in
/// BlockRunner.
GridResult run_grid(const LaunchContext& launch, int width,
                    std::span<const std::uint32_t> processors = {});

/// The same for a grid whose blocks, in clusters or not, wait for each other: all are in flight
/// together, a round each, and all make progress. Of several findings the first one in time is
/// reported.
GridResult run_grid_together(const LaunchContext& launch, int width,
                             std::span<const std::uint32_t> processors = {});

/// run_grid_together() with the workspace of grid-wide barriers, or run_scheduled_grid() where the
/// launch has a seed. Throws std::bad_alloc when it does not fit.
GridResult run_cooperative_grid(const LaunchContext& launch, int width,
                                std::span<const std::uint32_t> processors = {});

/// The same on the calling thread. `seed` alone chooses the order of clusters, blocks and their
/// warps; a few clusters or blocks are in flight together, or all (`whole`). `launch.checks` has
/// the same seed and interleaves the warps. Cooperative grids need a workspace (grid_workspace).
GridResult run_scheduled_grid(const LaunchContext& launch, std::uint64_t seed, bool whole,
                              std::span<const std::uint32_t> processors = {});

}  // namespace kernwright::sim
