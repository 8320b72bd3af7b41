// A cost model of tiles without tensor cores.
#include "kernels_src/gemm/fma/fma_choice.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"

#include <algorithm>
#include <array>

namespace kernwright::kernels {
namespace {

constexpr std::array<FmaTile, 8> kFloatTiles = {{{128, 128, 8, 8, 8, 4},
                                                 {128, 128, 16, 8, 8, 3},
                                                 {64, 128, 8, 8, 8, 4},
                                                 {64, 128, 8, 8, 32, 2},
                                                 {128, 64, 8, 8, 32, 2},
                                                 {128, 64, 8, 8, 8, 4},
                                                 {64, 64, 8, 4, 8, 4},
                                                 {32, 64, 4, 4, 16, 4}}};
constexpr std::array<FmaTile, 3> kDoubleTiles = {
    {{128, 64, 8, 8, 8, 4}, {64, 64, 8, 4, 8, 4}, {32, 64, 4, 4, 16, 4}}};

constexpr double kFmasPerCycle = 128;      // of float32
constexpr double kFmaLoadsPerCycle = 46;   // bytes, from L2
constexpr double kFmaMemoryPerCycle = 22;  // bytes, from device memory
constexpr double kFmaTileCycles =
    4000;  // of a tile before the first product and after the last one
constexpr double kFmaSecondCycles = 4000;    // of the second kernel
constexpr std::int64_t kLeastFmaPart = 128;  // steps of a split

/// Multiply-adds of a tile by their rate, with enough warps. The rest of the time goes to other
/// instructions and to reads of registers that collide; of float32 as measured on an H100.
double fma_share(const FmaTile& tile, std::size_t element, bool b_turned) {
  const int accumulators = tile.thread_rows * tile.thread_columns;
  if (element == 8) return accumulators >= 64 ? 0.86 : accumulators >= 32 ? 0.75 : 0.6;
  if (accumulators >= 128)
    return b_turned ? 0.79 : 0.887;  // registers of values on their way to be turned
  if (accumulators >= 64) {
    if (tile.rows * tile.columns >= 128 * 128) return 0.833;
    return tile.depth == 32 ? 0.71 : 0.77;
  }
  return accumulators >= 32 ? 0.68 : 0.5;
}
/// The part of the peak rate with so many warps on a multiprocessor: one computes while another
/// waits.
double fma_rate(int warps, std::size_t element) {
  if (element == 8) return warps >= 16 ? 1 : warps >= 8 ? 0.92 : warps >= 4 ? 0.7 : 0.4;
  return warps >= 16 ? 1 : warps >= 8 ? 0.98 : warps >= 4 ? 0.9 : 0.5;
}

int best_fma_splits(const GemmSize& size, std::size_t shared, FmaChoice choice) {
  int best = 1;
  double least = fma_cost(size, shared, choice);
  for (const int splits : {2, 3, 4, 6, 7, 8, 12, 14, 16, 24, 32, 64}) {
    const std::int64_t part_length = ceil_div(size.inner, splits);
    if (part_length < kLeastFmaPart || part_length * (splits - 1) >= size.inner) continue;
    choice.splits = splits;
    if (const double cost = fma_cost(size, shared, choice); cost < least) {
      least = cost;
      best = splits;
    }
  }
  return best;
}

}  // namespace

std::size_t FmaTile::shared_bytes(std::size_t element) const noexcept {
  const auto step_bytes = static_cast<std::size_t>(rows + columns) * element + 32;
  return static_cast<std::size_t>(stages) * static_cast<std::size_t>(depth) * step_bytes;
}

int FmaTile::blocks(std::size_t element) const noexcept {
  const bool few = static_cast<std::size_t>(thread_rows * thread_columns) * element <= 256;
  return (few ? 512 : 256) / threads();
}

std::span<const FmaTile> fma_tiles(std::size_t element) noexcept {
  if (element == 8) return kDoubleTiles;
  return kFloatTiles;
}

void require_fma_tile(const FmaTile& tile, std::size_t element) {
  const auto known = fma_tiles(element);
  const bool found = std::ranges::any_of(known, [&](const FmaTile& other) {
    return other.rows == tile.rows && other.columns == tile.columns &&
           other.thread_rows == tile.thread_rows && other.thread_columns == tile.thread_columns;
  });
  // Two slices exchange their accumulators where the stages were.
  const std::size_t accumulators =
      static_cast<std::size_t>(tile.rows) * static_cast<std::size_t>(tile.columns) * element;
  const bool sliced =
      tile.depth == 32 && tile.blocks(element) > 0 && accumulators <= tile.shared_bytes(element);
  const bool deep = tile.depth == 8 || tile.depth == 16 || sliced;
  if (found && deep && tile.stages >= 2 && tile.stages <= 4 &&
      tile.shared_bytes(element) <= 99 * 1024) {
    return;
  }
  std::string names;
  for (const FmaTile& other : known) {
    names += format("{}{}x{} by {}x{}", names.empty() ? "" : ", ", other.rows, other.columns,
                    other.thread_rows, other.thread_columns);
  }
  throw ArgumentError(
      format("a tile of a product of {} bytes an element is {}, with 2 to 4 stages of 8, 16 or "
             "32 steps, not {}",
             element, names, describe(FmaChoice{tile, 1, 8})));
}

double fma_cost(const GemmSize& size, std::size_t shared, const FmaChoice& choice) noexcept {
  const FmaTile& tile = choice.tile;
  const std::size_t element = size.out_bytes;
  const std::int64_t tiles = ceil_div(size.rows, tile.rows) * ceil_div(size.columns, tile.columns) *
                             size.batches * choice.splits;
  const std::int64_t each = ceil_div(tiles, std::max(1, size.multiprocessors));
  const auto fit = static_cast<std::int64_t>(shared / (tile.shared_bytes(element) + 1024));
  const std::int64_t at_once =
      std::max<std::int64_t>(1, std::min({fit, std::int64_t{tile.blocks(element)}, each}));
  const double area = static_cast<double>(tile.rows) * tile.columns;
  const int warps = static_cast<int>(at_once) * tile.threads() / 32;
  const double fmas = area / (kFmasPerCycle * 4 / static_cast<double>(element)) /
                      fma_share(tile, element, size.b_turned) / fma_rate(warps, element);
  const double loads = static_cast<double>(tile.rows + tile.columns) *
                       static_cast<double>(element) / kFmaLoadsPerCycle;
  const auto deep = static_cast<double>(ceil_div(size.inner, choice.splits));
  // Blocks on one multiprocessor begin and end while neighbouring blocks multiply.
  double cost = static_cast<double>(each) * deep * std::max(fmas, loads) +
                static_cast<double>(ceil_div(each, at_once)) * kFmaTileCycles;
  if (choice.splits > 1) {
    const double results = static_cast<double>(size.rows) * static_cast<double>(size.columns) *
                           static_cast<double>(size.batches) * static_cast<double>(element);
    cost += kFmaSecondCycles + results * (2 * choice.splits + 1) /
                                   (kFmaMemoryPerCycle * std::max(1, size.multiprocessors));
  }
  return cost;
}

FmaChoice choose_fma(const GemmSize& size, std::size_t shared, const FmaTile& tile,
                     int splits) noexcept {
  FmaChoice choice{tile, std::max(1, splits), 8};
  if (splits == 0) choice.splits = best_fma_splits(size, shared, choice);
  return choice;
}

FmaChoice choose_fma(const GemmSize& size, std::size_t shared, int splits) noexcept {
  FmaChoice best;
  double least = 0;
  for (const FmaTile& tile : fma_tiles(size.out_bytes)) {
    const FmaChoice choice = choose_fma(size, shared, tile, splits);
    const double cost = fma_cost(size, shared, choice);
    if (least == 0 || cost < least) {
      least = cost;
      best = choice;
    }
  }
  return best;
}

std::string describe(const FmaChoice& choice) {
  const FmaTile& tile = choice.tile;
  std::string text = format("{}x{} by {}x{}, {} stages of {}", tile.rows, tile.columns,
                            tile.thread_rows, tile.thread_columns, tile.stages, tile.depth);
  if (choice.splits > 1) text += format(", {} splits", choice.splits);
  return text;
}

}  // namespace kernwright::kernels
