// One launch, queued as slices: runs of its blocks, in their order.
#pragma once

#include "core/kernel.h"
#include "core/launch/launch_pieces.h"
#include "jit/sliced_kernel.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace kernwright {

/// The grid that slices have together: with LaunchConfig::most_blocks it may be larger than that of
/// the launch.
Dim3 slice_grid(const LaunchConfig& config) noexcept;

/// Not thread-safe. Arrays behind the arguments must live until the last slice has run.
class SlicedLaunch {
 public:
  /// Copies the bytes of the arguments; queues nothing. Compiles the kernel's twin if this is its
  /// first launch. With `words` (the order to stop and the next block, both 0 at first) blocks ask
  /// before they begin whether to stop. Throws what Kernel::launch() throws for the configuration,
  /// and NotSliceable: for code without a text, a text or PTX that slice_text() or slice_ptx()
  /// refuses, kernels that keep values in __device__ or __managed__ variables, cooperative
  /// launches, clusters that are no rows of blocks (with `words`: any cluster, unless the kernel
  /// asks in the loop), and without room for the twin's shared memory.
  SlicedLaunch(const Kernel& kernel, const LaunchConfig& config, std::span<void* const> arguments,
               const LaunchSite& site = {}, YieldAddresses words = {});

  const SlicedKernel& twin() const noexcept { return *sliced_; }
  /// With `words`: the work is done when the next block, or tile, has become this number.
  std::uint64_t end() const noexcept { return sliced_->asks_in_loop ? kAllTaken : blocks(); }
  /// Blocks of slice_grid(), and those not yet queued. With `words` the device alone knows the
  /// latter: left() stays.
  std::uint64_t blocks() const noexcept { return config_.grid.count(); }
  std::uint64_t left() const noexcept { return blocks() - first_; }

  /// Queues the next blocks on the configuration's stream, at most `max_blocks` (at least 1; whole
  /// clusters), and returns how many. With `words`: launches so many blocks, each of which runs the
  /// next block of the grid, or ends at once where none is left or the order to stop is given;
  /// blocks of SlicedKernel::asks_in_loop take tiles until then, as many blocks as the grid has.
  /// The sum of all slices is the whole launch: the same results in all bits unless they depend on
  /// the time when blocks run. Throws as Kernel::launch() does; the blocks then count as not
  /// queued.
  std::uint64_t queue(std::uint64_t max_blocks);

 private:
  /// The next tile behind the last one (product/yield.cuh).
  static constexpr std::uint64_t kAllTaken = std::uint64_t{1} << 30;

  void refuse_clusters(const Kernel& kernel);
  void copy_constants() const;

  std::shared_ptr<const SlicedKernel> sliced_;
  LaunchConfig config_;
  LaunchSite site_;
  std::uint64_t first_ = 0;
  std::uint32_t cluster_ = 1;  ///< blocks
  YieldAddresses words_;
  std::vector<std::byte> bytes_;
  std::vector<std::size_t> offsets_;  ///< of each argument in bytes_
};

}  // namespace kernwright
