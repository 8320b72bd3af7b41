// The extent of a tensor copy: the box or pixels named by its map and coordinates, row by row.
#pragma once

#include "sim/exec/copy/bulk_lane.h"
#include "sim/tensor_map.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernwright::sim {

/// The box of one copy.
struct Tile {
  TensorMapParameters map;
  std::uint64_t element = 1;                          ///< bytes
  std::array<std::int64_t, kMaxTensorRank> origin{};  ///< coordinates of the box's first element
  std::array<std::uint64_t, kMaxTensorRank> count{};  ///< elements that land in shared memory
  std::array<std::int64_t, kMaxTensorRank> offset{};  ///< im2col's, of W, H and D
  std::uint64_t row_bytes = 0, rows = 1;
  std::uint64_t bytes() const { return row_bytes * rows; }
};

/// Part of a row inside the tensor: `bytes` at `global`, and at `tile` of the tile.
struct Run {
  std::byte* global = nullptr;
  std::uint64_t tile = 0, bytes = 0;
  std::uint64_t address = 0;  ///< of `global`
};

/// Reads the map at `address` and the coordinates (and im2col's offsets) of the list `coordinates`.
/// False after a finding: no map, another rank or mode than the instruction's, or coordinates for
/// which GPUs raise an illegal instruction.
bool read_tile(const BulkLane& lane, std::uint64_t address, std::uint32_t coordinates, Tile& tile);

/// The runs of the tile inside the tensor. False after a finding.
bool find_runs(const BulkLane& lane, const Tile& tile, AccessKind kind, std::vector<Run>& runs);

}  // namespace kernwright::sim
