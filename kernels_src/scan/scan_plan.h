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
/// Threads of scan_flow.cu, its blocks for each multiprocessor, and the tiles of a block in shared
/// memory. While a block of two scans, the other one waits for others' sums or stores.
inline constexpr std::int64_t kFlowThreads = 512;
inline constexpr std::int64_t kFlowBlocks = 2;
inline constexpr std::int64_t kFlowTiles = 3;

/// few_tiles: of a row at most as many as a block has threads. flow: many, of packs of 16 bytes.
enum class ScanPath : std::uint8_t { rows, few_tiles, tiles, flow, columns };

/// The resources of a device.
struct ScanRoom {
  int processors;
  std::int64_t shared = 0;  ///< bytes of a block's shared memory
};

/// The kernel of a scan, and how its elements are cut.
struct ScanPlan {
  ScanPath path = ScanPath::rows;
  int pack = 1;               ///< elements of a load and a store
  int steps = 1;              ///< packs of a thread
  std::int64_t tiles = 1;     ///< of a row
  std::int64_t segment = 1;   ///< columns: elements of a segment
  std::int64_t segments = 1;  ///< of a column
};

/// Bytes of an element of each side, and of the values that are combined.
struct ScanSizes {
  std::size_t from, to, value;
};

/// Chooses them. `axis`: what is scanned.
ScanPlan plan_scan(const AxesPlan& axes, const Axis& axis, const ScanSizes& sizes,
                   const ScanRoom& room);

}  // namespace kernwright::kernels
