// The tiles of a matrix product on compute capability 9.0.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace kernwright::kernels {

/// The parameters of `Tile` in gemm.cu.
struct GemmTile {
  int rows = 128, columns = 128;  ///< of the result, made at once by a block
  int stages = 4;                 ///< of 128 bytes of the inner dimension, under way
  int groups = 2;                 ///< multiplying warpgroups
  bool ping_pong = false;  ///< each warpgroup has separate tiles: one ends while one multiplies
  int cluster = 1;         ///< blocks that share their loads of the operand with more lines
  bool split_k = false;    ///< split-K: the blocks sum parts of k of one tile, and add the parts
  bool operator==(const GemmTile&) const = default;

  /// Wide tiles end sooner at edges, and come in TMA tiles of 64 lines.
  bool is_wide() const noexcept { return columns >= 256; }
  int threads() const noexcept { return (groups + 1) * 128; }
  /// Blocks of a cluster that load parts of one a, with tiles beside each other, or of one b, with
  /// tiles below each other.
  int a_sharers() const noexcept { return rows > columns && !split_k ? cluster : 1; }
  int b_sharers() const noexcept { return split_k ? 1 : cluster / a_sharers(); }
  /// Of the result, made by a cluster.
  int cluster_rows() const noexcept { return rows * b_sharers(); }
  int cluster_columns() const noexcept { return columns * a_sharers(); }
  /// TMA tiles of the result that a warp stages: three groups leave room for one. With scales of
  /// blocks all of a tile's where there is room.
  int staged_tiles(bool block_scales = false) const noexcept;
  /// Lines of a TMA tile of a and of b that a block loads, as in `TileLoads` of product_stages.cuh.
  /// `along_inner`: the operand's elements follow each other along the inner dimension.
  int a_tma_lines(bool along_inner, bool promotes = false) const noexcept;
  int b_tma_lines(bool along_inner, bool gated, bool promotes = false) const noexcept;
  /// Bytes of accumulators that a block gets from peer blocks.
  std::size_t received_bytes() const noexcept;
  /// Bytes of shared memory: stages, TMA tiles of 16-bit results, received accumulators, scales of
  /// a's blocks, barriers.
  std::size_t shared_bytes(bool stages_result, bool block_scales = false) const noexcept;
};

/// The tiles to choose from.
std::span<const GemmTile> gemm_tiles(bool promotes = false, bool block_scales = false) noexcept;

/// The tiles with split-K in a cluster, not for groups of rows.
std::span<const GemmTile> split_k_tiles(bool block_scales = false) noexcept;

/// Throws ArgumentError with the rule broken by the tile.
void require_gemm_tile(const GemmTile& tile, bool promotes = false, bool block_scales = false);

/// "128x256, 4 stages, 2 groups, clusters of 2"
std::string describe(const GemmTile& tile);

}  // namespace kernwright::kernels
