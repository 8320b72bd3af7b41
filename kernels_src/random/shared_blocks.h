// Grids of blocks that share work by a loop over the grid.
#pragma once

#include "core/launch/launch_config.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace kernwright::kernels {

/// A launch whose blocks share `pieces` pieces of work, with at most `most` blocks. A larger grid
/// has the same result, so slices give each block one piece.
inline LaunchConfig shared_blocks(std::uint64_t pieces, std::uint64_t most, std::uint32_t threads,
                                  const Stream& stream) {
  LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>(std::min(pieces, most))};
  config.block = {threads};
  config.stream = stream;
  if (pieces > most && pieces <= std::numeric_limits<std::int32_t>::max())
    config.most_blocks = static_cast<std::uint32_t>(pieces);
  return config;
}

}  // namespace kernwright::kernels
