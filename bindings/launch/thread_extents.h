// The threads that kernel.forall() asks for, along one to three axes.
#pragma once

#include "core/launch/launch_config.h"

#include <pybind11/pybind11.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace kernwright::python {

/// Threads along x, y and z. `count` is the number of axes: 0 where a launch has a grid and a block
/// of its own.
struct ThreadExtents {
  std::array<std::int64_t, 3> threads{1, 1, 1};
  std::size_t count = 0;

  /// Whether there is no thread at all.
  bool is_empty() const noexcept { return threads[0] == 0 || threads[1] == 0 || threads[2] == 0; }
  /// "1000" or "(480, 640)", as the caller wrote it.
  std::string to_string() const;
  /// Sets the block to at most `block` threads, and the grid that covers all. Throws
  /// LaunchConfigError where the grid is beyond a limit.
  void choose(LaunchConfig& config, int block) const;
};

/// A number of threads, or a tuple of up to three with the fastest axis (x) last, as in the shape
/// of an array. Throws ArgumentError and LaunchConfigError.
ThreadExtents thread_extents_argument(pybind11::handle value);

}  // namespace kernwright::python
