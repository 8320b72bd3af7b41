// The tiles of a matrix product on compute capability 9.0.
#include "kernels_src/gemm/gemm_tile.h"

#include "base/errors.h"
#include "base/format.h"

#include <algorithm>
#include <array>

namespace kernwright::kernels {
namespace {

constexpr std::size_t kMostShared = 232448;
constexpr int kStagedBytes = 2048;
constexpr int kMostStaged = 220000;  // as in product_stages.cuh

constexpr std::array kGemmTiles = {
    GemmTile{128, 256, 4, 2, false, 1}, GemmTile{128, 256, 4, 2, false, 2},
    GemmTile{256, 128, 4, 2, false, 1}, GemmTile{256, 128, 4, 2, false, 2},
    GemmTile{128, 192, 4, 2, false, 1}, GemmTile{128, 192, 4, 2, false, 2},
    GemmTile{128, 224, 4, 2, false, 2}, GemmTile{128, 160, 4, 2, true, 1},
    GemmTile{128, 128, 6, 2, false, 1}, GemmTile{128, 128, 6, 2, false, 2},
    GemmTile{128, 128, 6, 2, true, 1},  GemmTile{128, 128, 6, 2, true, 2},
    GemmTile{64, 256, 4, 2, true, 1},   GemmTile{64, 256, 4, 2, true, 2},
    GemmTile{64, 192, 6, 2, true, 1},   GemmTile{64, 128, 8, 2, true, 1},
    GemmTile{128, 64, 8, 2, false, 1},  GemmTile{64, 64, 8, 1, false, 1},
    GemmTile{192, 192, 4, 3, false, 1}, GemmTile{192, 192, 4, 3, false, 2},
    GemmTile{192, 160, 4, 3, false, 1}, GemmTile{192, 128, 5, 3, false, 1},
    GemmTile{64, 96, 8, 1, false, 2},   GemmTile{128, 192, 4, 2, true, 1},
    GemmTile{128, 176, 4, 2, false, 1}, GemmTile{128, 176, 4, 2, false, 2},
    GemmTile{192, 176, 4, 3, false, 1},
};

/// Tiles of both, for few tiles with a long inner dimension.
constexpr std::array kSplitKTiles = {
    GemmTile{64, 64, 12, 1, false, 2, true},  GemmTile{64, 64, 12, 1, false, 3, true},
    GemmTile{64, 64, 12, 1, false, 4, true},  GemmTile{128, 64, 7, 2, false, 2, true},
    GemmTile{128, 64, 7, 2, false, 3, true},  GemmTile{128, 64, 7, 2, false, 4, true},
    GemmTile{128, 128, 5, 2, false, 2, true},
};

/// Split-K tiles with scales of blocks. Tiles of 64x64 took less time with 8 stages than with more
/// on an H200, where clusters of four were slower than of two and three.
constexpr std::array kSplitKBlockTiles = {
    GemmTile{64, 64, 8, 1, false, 2, true},  GemmTile{64, 64, 8, 1, false, 3, true},
    GemmTile{64, 128, 7, 1, false, 2, true}, GemmTile{128, 64, 6, 2, false, 2, true},
    GemmTile{128, 64, 6, 2, false, 3, true}, GemmTile{128, 128, 5, 2, false, 2, true},
};

/// Tiles of promoted_gemm.cu. The warpgroups do not alternate: one adds while the second one
/// multiplies. The first two tiles have no room for scales of blocks. Without scales both are
/// faster than the last two.
constexpr std::array kPromotedTiles = {
    GemmTile{256, 128, 4, 2, false, 1}, GemmTile{256, 128, 4, 2, false, 2},
    GemmTile{256, 128, 3, 2, false, 1}, GemmTile{256, 128, 3, 2, false, 2},
    GemmTile{128, 192, 4, 2, false, 1}, GemmTile{128, 192, 4, 2, false, 2},
    GemmTile{128, 128, 5, 2, false, 1}, GemmTile{128, 128, 5, 2, false, 2},
    GemmTile{128, 64, 7, 2, false, 1},  GemmTile{64, 128, 8, 1, false, 1},
    GemmTile{64, 64, 8, 1, false, 1},   GemmTile{128, 256, 4, 2, false, 1},
    GemmTile{128, 256, 4, 2, false, 2},
};
constexpr std::size_t kLineTiles = 2, kBlockTiles = 2;  // the first and the last ones

/// The widths of products in wgmma.cuh; of promoted accumulators only the widths of whole TMA
/// tiles.
bool has_columns(const GemmTile& tile, bool promotes) {
  const int columns = tile.columns;
  const bool half = columns == 96 || columns == 160 || columns == 176 || columns == 224;
  if (!promotes && half) return true;
  return columns >= 64 && columns <= 256 && columns % 64 == 0;
}

}  // namespace

int GemmTile::a_tma_lines(bool along_inner, bool promotes) const noexcept {
  const int whole = !along_inner || (is_wide() && !promotes) ? 64 : rows;
  return whole / a_sharers();
}

int GemmTile::b_tma_lines(bool along_inner, bool gated, bool promotes) const noexcept {
  const int sharers = b_sharers();
  if (!along_inner) return 64 / sharers;
  if (is_wide() && !promotes) return 64;
  // The columns of a gated tile come in two TMA tiles at least.
  return columns / (gated ? std::max(2, sharers) : sharers);
}

int GemmTile::staged_tiles(bool block_scales) const noexcept {
  if (groups > 2) return 1;
  if (!block_scales) return 2;
  const int stage_bytes = (rows + (columns + 63) / 64 * 64) * 128 + rows * 4;
  const int room = (kMostStaged - stages * stage_bytes) / (groups * 4 * kStagedBytes);
  const int waves = rows / 64 / (ping_pong ? 1 : groups);
  return std::clamp(room, 2, std::max(2, waves * ((columns + 63) / 64)));
}

std::size_t GemmTile::received_bytes() const noexcept {
  if (!split_k) return 0;
  const int warps = groups * 4, block_warps = (warps + cluster - 1) / cluster;
  return static_cast<std::size_t>((cluster - 1) * block_warps * (rows / warps) * columns * 4);
}

std::size_t GemmTile::shared_bytes(bool stages_result, bool block_scales) const noexcept {
  const auto stage_bytes = static_cast<std::size_t>(rows + (columns + 63) / 64 * 64) * 128;
  const auto depth = static_cast<std::size_t>(stages);
  const auto staging =
      static_cast<std::size_t>(groups * 4 * staged_tiles(block_scales) * kStagedBytes);
  const std::size_t scales = block_scales ? depth * static_cast<std::size_t>(rows) * 4 : 0;
  return depth * stage_bytes + (stages_result ? staging : 0) + scales + received_bytes() +
         depth * 16 + (split_k ? 24 : 16);
}

std::span<const GemmTile> gemm_tiles(bool promotes, bool block_scales) noexcept {
  if (!promotes) return kGemmTiles;
  const std::span<const GemmTile> all = kPromotedTiles;
  return block_scales ? all.subspan(kLineTiles) : all.first(all.size() - kBlockTiles);
}

std::span<const GemmTile> split_k_tiles(bool block_scales) noexcept {
  if (block_scales) return kSplitKBlockTiles;
  return kSplitKTiles;
}

void require_gemm_tile(const GemmTile& tile, bool promotes, bool block_scales) {
  // A stage of 256 columns has the accumulators of half of the columns at a time.
  const int stage_accumulators = !promotes            ? 0
                                 : tile.columns > 192 ? tile.columns / 2
                                                      : tile.columns;
  const int unit = 64 * (tile.ping_pong ? 1 : std::max(1, tile.groups));
  const char* wrong = nullptr;
  if (tile.groups < 1 || tile.groups > 3 || (tile.ping_pong && tile.groups != 2)) {
    wrong = "has 1 to 3 groups, 2 that take turns";
  } else if (tile.rows < unit || tile.rows > 256 || tile.rows % unit != 0) {
    wrong = "has at most 256 rows, a multiple of 64 for each group";
  } else if (!has_columns(tile, promotes)) {
    wrong = promotes ? "has 64, 128, 192 or 256 columns"
                     : "has 64, 96, 128, 160, 176, 192, 224 or 256 columns";
  } else if (tile.rows / unit * tile.columns + stage_accumulators > 192 && tile.groups > 2) {
    wrong = "of 3 groups has at most 96 accumulators for each thread, those of a stage included";
  } else if (tile.rows / unit * tile.columns + stage_accumulators > 384) {
    wrong = promotes ? "has at most 192 accumulators for each thread, those of a stage included"
                     : "has at most 192 accumulators for each thread";
  } else if (tile.split_k && (tile.ping_pong || tile.cluster < 2 || tile.cluster > 8)) {
    wrong = "adds the accumulators of 2 to 8 blocks if its groups do not take turns";
  } else if (tile.stages < 2 ||
             (!tile.split_k && (tile.cluster < 1 || tile.cluster > 4 || tile.cluster == 3))) {
    wrong = "has 2 stages or more and clusters of 1, 2 or 4";
  } else if (tile.shared_bytes(true, block_scales) > kMostShared) {
    wrong = "fits 232448 bytes of shared memory";
  }
  if (wrong == nullptr) return;
  throw ArgumentError(format("a tile of a matrix product {}, not {}", wrong, describe(tile)));
}

std::string describe(const GemmTile& tile) {
  std::string text = format("{}x{}, {} stages, {} groups{}", tile.rows, tile.columns, tile.stages,
                            tile.groups, tile.ping_pong ? " in turn" : "");
  if (tile.split_k) {
    text += format(", split-K over {} blocks", tile.cluster);
  } else if (tile.cluster > 1) {
    text += format(", clusters of {}", tile.cluster);
  }
  return text;
}

}  // namespace kernwright::kernels
