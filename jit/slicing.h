// Cuts all launches of a thread into slices.
#pragma once

#include "core/launch/launch_hook.h"
#include "core/launch/launch_pieces.h"
#include "driver/driver_types.h"

#include <cstdint>
#include <memory>
#include <string>

namespace kernwright {

struct SlicedKernel;

/// What a Slicing has done.
struct SlicingCounts {
  std::uint64_t launches = 0;  ///< of kernels, whole or cut
  std::uint64_t slices = 0;    ///< the launches that they became
  std::uint64_t refused = 0;   ///< launches left whole, since they could not be cut
  std::string reason = {};     ///< of the last one
};

/// The hook for LaunchHookScope. A launch of at most `max_blocks` blocks stays whole. Not
/// thread-safe: one for each thread.
class Slicing : public LaunchHook {
 public:
  struct Options {
    std::uint64_t max_blocks = 1;  ///< of a slice
    bool strict = false;           ///< throws NotSliceable; else such a launch stays whole
    /// Of the order of SlicedLaunch, in front of the next block; then `max_blocks` are launched at
    /// once.
    CUdeviceptr words = 0;
  };
  /// Throws InvalidArgument for 0 blocks.
  explicit Slicing(const Options& options);
  void launch(const Kernel& kernel, const LaunchConfig& config, std::span<void* const> arguments,
              const LaunchSite& site) override;
  const SlicingCounts& counts() const noexcept { return counts_; }

 protected:
  /// Called before the first slice of a launch is queued.
  virtual void begin(const SlicedKernel&) {}
  const Options options_;

 private:
  SlicingCounts counts_;
};

/// Slices as a LaunchCutter for schedulers. A launch with a measured time is cut by slice_blocks(),
/// any other into slices of `request.most_blocks`. With `request.words` the launch becomes one
/// piece that yields, unless SlicedLaunch refuses that. Null for what SlicedLaunch refuses, for
/// what slice_blocks() leaves whole, and for a grid that is on the device all at once: its blocks
/// may wait for each other. `begin` is told of the twin before the first slice.
std::unique_ptr<LaunchPieces> cut_launch(const Kernel& kernel, const LaunchConfig& config,
                                         std::span<void* const> arguments, const LaunchSite& site,
                                         const PieceRequest& request,
                                         void (*begin)(const SlicedKernel&) = nullptr);

}  // namespace kernwright
