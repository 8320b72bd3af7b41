// The shape of a scan's launches: which kernel, how wide, in how many parts.
#pragma once

#include "kernels_src/axes.h"

#include <cstddef>
#include <cstdint>

namespace kernwright::kernels {

/// Threads of the blocks of scan.cu.
inline constexpr std::int64_t kTileThreads = 512;
inline constexpr std::int64_t kRowThreads = 256;
inline constexpr std::int64_t kColumnThreads = 128;

/// few_tiles: of a row at most as many as a block has threads.
enum class ScanPath : std::uint8_t { rows, few_tiles, tiles, columns };

struct ScanPlan {
  ScanPath path = ScanPath::rows;
  int pack = 1;               ///< elements of a load and a store
  int steps = 1;              ///< packs of a thread
  std::int64_t tiles = 1;     ///< of a row
  std::int64_t segment = 1;   ///< columns: elements of a segment
  std::int64_t segments = 1;  ///< of a column
};

/// Chooses them. `axis`: what is scanned; sizes of the elements of both sides in bytes.
ScanPlan plan_scan(const AxesPlan& axes, const Axis& axis, std::size_t from_size,
                   std::size_t to_size, int processors);

}  // namespace kernwright::kernels
