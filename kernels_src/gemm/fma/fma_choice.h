// The tiles of a matrix product by fused multiply-adds.
#pragma once

#include "kernels_src/gemm/gemm_choice.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace kernwright::kernels {

/// The parameters of `Tile` in fma_gemm.cu.
struct FmaTile {
  int rows = 128, columns = 128;            ///< of the result, made by a block
  int thread_rows = 8, thread_columns = 8;  ///< of it, held by a thread
  int depth = 8;                            ///< steps of the inner dimension in a stage
  int stages = 4;                           ///< under way
  bool operator==(const FmaTile&) const = default;

  /// Groups of threads: each adds up a part of a stage's steps, and the groups add their
  /// accumulators at the end.
  int slices() const noexcept { return depth == 32 ? 2 : 1; }
  int threads() const noexcept {
    return rows / thread_rows * (columns / thread_columns) * slices();
  }
  /// `element`: bytes of one.
  std::size_t shared_bytes(std::size_t element) const noexcept;
  /// Blocks that the kernel's registers leave room for on a multiprocessor.
  int blocks(std::size_t element) const noexcept;
};

struct FmaChoice {
  FmaTile tile{};
  int splits = 1;  ///< parts of the inner dimension, summed by a second kernel
  int group = 8;   ///< rows of tiles walked together
};

/// The tiles to choose from, for elements of 4 or 8 bytes.
std::span<const FmaTile> fma_tiles(std::size_t element) noexcept;

/// Throws ArgumentError for an unknown tile.
void require_fma_tile(const FmaTile& tile, std::size_t element);

/// The cheapest of the tiles and splits by a model of one multiprocessor: how many warps share it,
/// and how much of their work is multiply-adds. `shared`: bytes that a multiprocessor has;
/// out_bytes of the size are those of an operand's element. `splits` 0: chosen.
FmaChoice choose_fma(const GemmSize& size, std::size_t shared, int splits = 0) noexcept;
/// The choice for a given tile.
FmaChoice choose_fma(const GemmSize& size, std::size_t shared, const FmaTile& tile,
                     int splits) noexcept;
/// Cycles by the model.
double fma_cost(const GemmSize& size, std::size_t shared, const FmaChoice& choice) noexcept;

/// "128x128 by 8x8, 4 stages of 8, 3 splits"
std::string describe(const FmaChoice& choice);

}  // namespace kernwright::kernels
