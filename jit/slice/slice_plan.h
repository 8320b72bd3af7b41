// How many blocks make a slice of a wanted duration.
#pragma once

#include <cstdint>

namespace kernwright {

/// A launch as it was measured, and what is wanted.
struct SliceRequest {
  std::uint64_t blocks = 0;  ///< of the grid
  double launch_us = 0;      ///< time of the whole launch
  double latency_us = 0;     ///< the longest wanted time of a slice
  int multiprocessors = 1;
  int resident_blocks = 1;  ///< at once on one multiprocessor
};

/// Blocks of a slice, by a model in which every block takes the same time: ceil(1.3 * launch_us /
/// latency_us) slices, each of whole rounds over all multiprocessors. The answer is `blocks`, for a
/// launch to be left whole, where one slice is enough and where a slice would leave multiprocessors
/// idle. Throws InvalidArgument for times that are not above 0, and counts below 1.
std::uint64_t slice_blocks(const SliceRequest& request);

/// The fewest blocks at once with which `blocks` need no more rounds than with `most` at once: a
/// multiple of `unit`, or `most`. All above 0.
std::uint64_t even_round(std::uint64_t blocks, std::uint64_t most, std::uint64_t unit) noexcept;

}  // namespace kernwright
