// The tiles of a matrix product on compute capability 9.0.
#pragma once

#include "core/device.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace kernwright::kernels {

/// The parameters of `Tile` in gemm.cu.
struct GemmTile {
  int rows = 128, columns = 128;  ///< of the result, made at once by a block
  int stages = 4;                 ///< of 128 bytes of the inner dimension, under way
  int groups = 2;                 ///< multiplying warpgroups
  bool ping_pong = false;  ///< each has tiles of its own: one ends while the other multiplies
  int cluster = 1;         ///< blocks that share their loads of the operand with more lines
  bool gathers = false;    ///< or of one tile: they sum parts of the inner dimension, and add them
  bool operator==(const GemmTile&) const = default;

  int threads() const noexcept { return (groups + 1) * 128; }
  /// Blocks of a cluster that load parts of the same a, with tiles beside each other, or of the
  /// same b, with tiles below each other.
  int sharers_of_a() const noexcept { return rows > columns && !gathers ? cluster : 1; }
  int sharers_of_b() const noexcept { return gathers ? 1 : cluster / sharers_of_a(); }
  /// Of the result, made by a cluster.
  int cluster_rows() const noexcept { return rows * sharers_of_b(); }
  int cluster_columns() const noexcept { return columns * sharers_of_a(); }
  /// Boxes of the result that a warp stages: three groups leave room for one.
  int boxes() const noexcept { return groups > 2 ? 1 : 2; }
  /// Lines of a box of a and of b that a block loads, as in `TileBoxes` of product_stages.cuh.
  /// `along_inner`: the operand's elements follow each other along the inner dimension.
  int box_lines_of_a(bool along_inner, bool promotes = false) const noexcept;
  int box_lines_of_b(bool along_inner, bool gated, bool promotes = false) const noexcept;
  /// Bytes of sums that a block gets from the others.
  std::size_t gathered_bytes() const noexcept;
  /// Bytes of shared memory: stages, boxes of 16-bit results, gathered sums, scales of a's blocks,
  /// barriers.
  std::size_t shared_bytes(bool stages_result, bool block_scales = false) const noexcept;
};

struct GemmChoice {
  GemmTile tile{};
  int splits = 1;  ///< parts of the inner dimension, summed by a second kernel
  int group = 8;   ///< rows of tiles walked together
  bool operator==(const GemmChoice&) const = default;
};

/// The arguments of the choice.
struct GemmSize {
  std::int64_t rows = 0, columns = 0, inner = 0, batches = 1;
  int multiprocessors = 132;
  int bandwidth = 3352;       ///< of device memory, in GB/s: an H100's
  std::size_t out_bytes = 2;  ///< of an element of the result
  std::size_t in_bytes = 2;   ///< of an element of the operands
  bool promotes = false;      ///< sums of each stage are made apart (promoted_gemm.cu)
  bool block_scales = false;  ///< besides, multiplied by scales of blocks of a and b
  bool whole = false;         ///< sums of integers are not split
  bool b_turned = false;      ///< neighbours of b lie along the inner dimension
  bool finishes = false;      ///< sums get a bias, an activation or another matrix
  bool gated = false;         ///< tiles have two halves, of 64 columns or 128; no splits
  std::int64_t groups = 0;    ///< sharing the rows, in unknown numbers; no splits
  std::int64_t capacity = 0;  ///< of each group, where they lie apart: all rows are taken
  std::int64_t a_pitch = 128, b_pitch = 128;  ///< bytes between lines of the operands
  bool operator==(const GemmSize&) const = default;
};

/// What device memory brings at best, in GB/s; an H100's if the driver does not tell.
int memory_bandwidth(const Device& device);

/// The tiles to choose from.
std::span<const GemmTile> gemm_tiles(bool promotes = false, bool block_scales = false) noexcept;

/// Those whose blocks gather their sums, not for groups of rows.
std::span<const GemmTile> gathering_tiles() noexcept;

/// Throws ArgumentError with the rule broken by the tile.
void require_gemm_tile(const GemmTile& tile, bool promotes = false, bool block_scales = false);

/// Cycles of the product by a model of one multiprocessor: tensor cores against loads from L2, in
/// whole waves of tiles (after DeepGEMM's choice of its configurations).
double gemm_cost(const GemmSize& size, const GemmChoice& choice) noexcept;

/// The cheapest of the tiles and splits, and the group whose loads of a wave are the smallest. Made
/// once for each size. Thread-safe.
GemmChoice choose_gemm(const GemmSize& size);
/// The same for a given tile; `splits` 0: chosen.
GemmChoice choose_gemm(const GemmSize& size, const GemmTile& tile, int splits) noexcept;

/// Which edges of a product have tiles that take less time: a last row of tiles without rows for
/// the second warpgroup, a last column of them with few columns. They are walked last. On an H100
/// only tiles of 256 columns end sooner there.
struct GemmEdges {
  bool short_rows = false, narrow_columns = false;
};
GemmEdges gemm_edges(const GemmSize& size, const GemmChoice& choice) noexcept;

/// "128x256, 4 stages, 2 groups, clusters of 2, 3 splits"
std::string describe(const GemmChoice& choice);

}  // namespace kernwright::kernels
