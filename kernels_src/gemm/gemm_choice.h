// Which tile, cluster and splits a matrix product takes on compute capability 9.0.
#pragma once

#include "core/device.h"
#include "kernels_src/gemm/gemm_tile.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace kernwright::kernels {

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
  bool promotes = false;      ///< each stage has separate accumulators (promoted_gemm.cu)
  bool block_scales = false;  ///< besides, multiplied by scales of blocks of a and b
  bool whole = false;         ///< products of integers have no split-K
  bool b_turned = false;      ///< neighbours of b lie along the inner dimension
  bool finishes = false;      ///< accumulators get a bias, an activation or another matrix
  bool gated = false;         ///< tiles have two halves, of 64 columns or 128; no splits
  std::int64_t groups = 0;    ///< sharing the rows, in unknown numbers; no splits
  std::int64_t capacity = 0;  ///< of each group, where they lie apart: all rows are taken
  std::int64_t a_pitch = 128, b_pitch = 128;  ///< bytes between lines of the operands
  bool operator==(const GemmSize&) const = default;
};

/// Rows with which most time goes into reading b.
constexpr std::int64_t kFewGemmRows = 256;
/// Bytes of operands that come from memory in the time that PDL gains.
constexpr std::int64_t kSmallOperands = 16'000'000;

/// What device memory brings at best, in GB/s; an H100's if the driver does not tell.
int memory_bandwidth(const Device& device);

/// Cycles of the product by a model of one multiprocessor: tensor cores against loads from L2, in
/// whole waves of tiles (after DeepGEMM's choice of its configurations).
double gemm_cost(const GemmSize& size, const GemmChoice& choice) noexcept;

/// The cheapest of the tiles and splits, and the group whose loads of a wave are the smallest. Made
/// once for each size. Thread-safe.
GemmChoice choose_gemm(const GemmSize& size);
/// The choice for a given tile; `splits` 0: chosen.
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
