// The tiles of a matrix product by mma.sync.
#pragma once

#include "kernels_src/gemm/gemm_choice.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kernwright::kernels {

/// The parameters of `Tile` in mma_gemm.cu.
struct MmaTile {
  int rows = 128, columns = 128;  ///< of the result, made by a block
  int stages = 4;                 ///< of 64 bytes of the inner dimension, under way
  bool operator==(const MmaTile&) const = default;

  int warp_rows() const noexcept { return rows < 128 ? 32 : 64; }  ///< of a warp
  int warp_columns() const noexcept { return columns < 128 ? 32 : 64; }
  int threads() const noexcept { return rows / warp_rows() * (columns / warp_columns()) * 32; }
  std::size_t shared_bytes() const noexcept {
    return static_cast<std::size_t>(stages * (rows + columns)) * 64;
  }
};

struct MmaChoice {
  MmaTile tile{};
  int splits = 1;  ///< parts of the inner dimension, summed by a second kernel
  int group = 8;   ///< rows of tiles that are walked together
};

/// The tiles that are chosen from.
std::span<const MmaTile> mma_tiles() noexcept;

/// Throws ArgumentError for a tile that there is not.
void require_mma_tile(const MmaTile& tile);

/// The cheapest of the tiles and splits by a model of one multiprocessor: whole rounds of tiles,
/// each at the rate at which warps read shared memory. `steps`: of 64 bytes of the inner
/// dimension; `shared`: bytes of a multiprocessor; may_split: a second kernel can sum.
MmaChoice choose_mma(const GemmSize& size, std::int64_t steps, std::size_t shared,
                     bool may_split) noexcept;
/// The splits for a given tile.
MmaChoice choose_mma(const GemmSize& size, std::int64_t steps, const MmaTile& tile,
                     bool may_split) noexcept;

}  // namespace kernwright::kernels
