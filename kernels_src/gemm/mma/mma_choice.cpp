// A cost model of tiles.
#include "kernels_src/gemm/mma/mma_choice.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"

#include <algorithm>
#include <array>

namespace kernwright::kernels {
namespace {

constexpr std::array<MmaTile, 4> kMmaTiles = {{{128, 256}, {128, 128}, {128, 64}, {64, 64}}};
constexpr std::size_t kLeastShared = 100 * 1024;  // of a multiprocessor of 8.6, 8.9 and 12.0
constexpr double kProductsPerCycle = 1024;        // of 16-bit floats
constexpr double kMemoryPerCycle = 16;            // bytes, of a multiprocessor
constexpr double kTileCycles = 1500;              // before its first product and after its last
constexpr double kSecondKernelCycles = 4000;

/// The share of the matrix unit's rate: smaller tiles read more of shared memory for each product.
double mma_rate(const MmaTile& tile) {
  const double each = tile.warp_rows() * tile.warp_columns();
  return each >= 4096 ? 1 : each >= 2048 ? 0.85 : 0.7;
}

double mma_cost(const GemmSize& size, std::int64_t steps, const MmaChoice& choice) {
  const MmaTile& tile = choice.tile;
  const std::int64_t tiles = ceil_div(size.rows, tile.rows) * ceil_div(size.columns, tile.columns) *
                             size.batches * choice.splits;
  const auto rounds = static_cast<double>(ceil_div(tiles, std::max(1, size.multiprocessors)));
  const double area = static_cast<double>(tile.rows) * tile.columns;
  const auto deep = static_cast<double>(ceil_div(steps, choice.splits));
  double cost = rounds * (deep * area * 32 / kProductsPerCycle / mma_rate(tile) + kTileCycles);
  if (choice.splits > 1) {
    const double results = static_cast<double>(size.rows) * static_cast<double>(size.columns) *
                           static_cast<double>(size.batches);
    cost += kSecondKernelCycles + results * (choice.splits * 8 + 2) /
                                      (kMemoryPerCycle * std::max(1, size.multiprocessors));
  }
  return cost;
}

}  // namespace

std::span<const MmaTile> mma_tiles() noexcept { return kMmaTiles; }

void require_mma_tile(const MmaTile& tile) {
  const bool known = std::ranges::any_of(kMmaTiles, [&](const MmaTile& other) {
    return other.rows == tile.rows && other.columns == tile.columns;
  });
  if (known && tile.stages >= 2 && tile.stages <= 4) return;
  throw ArgumentError(
      format("a tile of a product by mma.sync is 128x256, 128x128, 128x64 or 64x64 of 2 to 4 "
             "stages, not {}x{} of {}",
             tile.rows, tile.columns, tile.stages));
}

MmaChoice choose_mma(const GemmSize& size, std::int64_t steps, const MmaTile& tile,
                     bool may_split) noexcept {
  MmaChoice best{.tile = tile};
  double least = mma_cost(size, steps, best);
  for (int splits : {2, 3, 4, 6, 8, 12, 16}) {
    const std::int64_t part_steps = ceil_div(steps, splits);
    if (!may_split || part_steps < 16 || part_steps * (splits - 1) >= steps) continue;
    MmaChoice choice = best;
    choice.splits = splits;
    if (const double cost = mma_cost(size, steps, choice); cost < least) {
      least = cost;
      best = choice;
    }
  }
  return best;
}

MmaChoice choose_mma(const GemmSize& size, std::int64_t steps, std::size_t shared,
                     bool may_split) noexcept {
  MmaChoice best;
  double least = 0;
  for (MmaTile tile : kMmaTiles) {
    if (shared <= kLeastShared) tile.stages = 3;  // two blocks, or the largest tile
    const MmaChoice choice = choose_mma(size, steps, tile, may_split);
    const double cost = mma_cost(size, steps, choice);
    if (least == 0 || cost < least) {
      least = cost;
      best = choice;
    }
  }
  return best;
}

}  // namespace kernwright::kernels
