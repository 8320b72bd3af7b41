// CUDA's launch configuration as a value: grid, block, shared memory, stream and more.
#pragma once

#include "core/event.h"
#include "core/stream.h"

#include <cstdint>
#include <optional>

namespace kernwright {

/// Up to three extents; the unused ones are 1.
struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const noexcept { return std::uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

/// `stream` empty: the legacy default stream of the kernel's device.
struct LaunchConfig {
  Dim3 grid{};
  Dim3 block{};
  std::uint32_t shared_bytes = 0;  ///< dynamic shared memory; above 48 KB it is opted in by itself
  Stream stream{};
  Dim3 cluster{0, 0, 0};     ///< blocks of a cluster; 0 = no cluster
  bool cooperative = false;  ///< all blocks resident at once (grid synchronisation)
  int priority = 0;          ///< lower numbers are higher; 0: that of the stream
  /// May start before the previous kernel of the stream ended, as soon as all its blocks have
  /// called cudaTriggerProgrammaticLaunchCompletion() or ended; waits for it by
  /// cudaGridDependencySynchronize().
  bool programmatic_dependent = false;
  /// Blocks along the first axis up to which a larger grid gives the same result in all bits: the
  /// pieces of work that the blocks share. Slices give each block one of them. 0: the grid alone.
  std::uint32_t most_blocks = 0;
  /// Recorded when all blocks have called cudaTriggerProgrammaticLaunchCompletion() or ended; with
  /// `programmatic_event_at_start` when all have started. Made without timing.
  std::optional<Event> programmatic_event = std::nullopt;
  bool programmatic_event_at_start = false;
  /// Recorded when all blocks have started. Made without timing.
  std::optional<Event> launch_completion_event = std::nullopt;
};

}  // namespace kernwright
