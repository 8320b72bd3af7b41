// The choice among the kernels for few rows and their parameters.
#include "kernels_src/plans/skinny_plan.h"

#include "base/math.h"
#include "kernels_src/plans/planned_rows.h"
#include "kernels_src/plans/skinny_tma_plan.h"

#include <algorithm>
#include <bit>

namespace kernwright::kernels {
namespace {

/// Blocks share k only where there are too few of them, below `busy`.
void choose_skinny_splits(SkinnyPlan& plan, std::int64_t busy, std::int64_t blocks,
                          std::int64_t most) {
  choose_skinny(plan.splits, std::clamp<std::int64_t>(busy / std::max<std::int64_t>(1, blocks), 1,
                                                      std::max<std::int64_t>(1, most)));
}

/// Bytes that a load of the weights may have.
int load_bytes(const SkinnyShape& shape) {
  return shape.width * static_cast<int>(scalar_size(shape.weight_type));
}

bool is_large_skinny(const SkinnyShape& shape) { return shape.n * shape.k >= kLargeSkinny; }

/// Rows of the weights, for each multiprocessor, whose blocks of tiles all run at once.
constexpr std::int64_t kOneWaveRows = 32;

bool fits_one_wave(const SkinnyShape& shape) {
  return shape.n <= kOneWaveRows * shape.multiprocessors;
}

// ---- weights of one byte and up to 8 rows of x: measured on an H200

constexpr std::int64_t kFewByteSize = 1 << 22;  ///< numbers of weights, at least
constexpr std::int64_t kManyRows = 64;          ///< of weights, for each multiprocessor

bool has_many_rows(const SkinnyShape& shape) {
  return shape.n >= kManyRows * shape.multiprocessors;
}

bool is_few_byte_rows(const SkinnyShape& shape) {
  return shape.clusters && shape.batches == 1 && shape.m <= 8 &&
         scalar_size(shape.weight_type) == 1 && shape.n * shape.k >= kFewByteSize;
}

/// Many loads of a warp are in flight where all blocks run at once. Of many rows blocks are small,
/// so that as many as possible run; the decoder of int8 gains there by two tiles that share the
/// loads of x.
void plan_few_byte_rows(const SkinnyShape& shape, SkinnyPlan& plan) {
  const bool many = has_many_rows(shape);
  choose_skinny(plan.warps, many ? 4 : 8);
  choose_skinny(plan.rows, many && shape.weight_type == ScalarType::int8 ? 2 : 1);
  choose_skinny(plan.unroll, fits_one_wave(shape) ? 4 : 2);
  if (plan.hint < 0) plan.hint = 1;
  if (plan.ahead < 0) plan.ahead = 1;
}

// ---- weights of one byte and more than 8 rows of x: measured on an H100 and an H200

constexpr std::int64_t kByteSkinnyRows = 4096;     ///< of weights, at least
constexpr std::int64_t kByteSkinnySize = 1 << 25;  ///< numbers of weights of a middle size

bool is_byte_skinny(const SkinnyShape& shape) {
  return shape.clusters && shape.batches == 1 && shape.m > 8 &&
         scalar_size(shape.weight_type) == 1 && shape.n >= kByteSkinnyRows;
}

/// Whether each warp reads x again, instead of once for a block.
bool takes_byte_tiles(const SkinnyShape& shape) {
  if (!is_byte_skinny(shape)) return false;
  return shape.m <= 16 || (shape.m <= 32 && shape.n * shape.k <= kByteSkinnySize);
}

/// Two tiles of rows of the weights share the loads of x, unless all blocks run at once.
void plan_byte_tiles(const SkinnyShape& shape, SkinnyPlan& plan) {
  const bool few = shape.m <= 16, one_wave = few && fits_one_wave(shape);
  const bool many = few && has_many_rows(shape);
  choose_skinny(plan.rows, one_wave ? 1 : 2);
  choose_skinny(plan.warps, many ? 4 : 8);
  choose_skinny(plan.unroll, many || one_wave ? 2 : 1);
  if (plan.hint < 0) plan.hint = 1;
  if (few && plan.ahead < 0) plan.ahead = 1;
}

constexpr std::int64_t kMiddleSkinny = std::int64_t{1} << 20;  ///< numbers of weights, at least

/// Blocks of 4 warps with four loads in flight, where almost half of the time of blocks of 8 would
/// pass with idle multiprocessors, in the last of several waves, and idle warps, in the last step
/// along k (bfloat16 8x4608x2560 on an H200: 10.8 -> 8.2 us).
void plan_small_blocks(const SkinnyShape& shape, SkinnyPlan& plan) {
  const std::int64_t wave = std::int64_t{2} * shape.multiprocessors;
  const std::int64_t blocks = ceil_div(shape.n, 16), loads = ceil_div(shape.k, 128);
  const std::int64_t used = blocks * loads;
  const std::int64_t places = round_up(blocks, wave);
  const bool wasted = 8 * blocks < 5 * places || 16 * used < 9 * places * round_up(loads, 8);
  if (blocks <= wave || !wasted) return;
  choose_skinny(plan.warps, 4);
  choose_skinny(plan.unroll, 4);
}

/// Two loads in flight; blocks of 16 warps, unless they fill only a part of their second or later
/// waves. A few waves gain by PDL. Measured on an H100 and an H200 with 8 rows of x.
void plan_large_tiles(const SkinnyShape& shape, SkinnyPlan& plan) {
  const std::int64_t wave = std::int64_t{2} * shape.multiprocessors;
  const std::int64_t blocks = ceil_div(shape.n, 16);
  choose_skinny(plan.warps, blocks <= wave || blocks >= 8 * wave ? 16 : 8);
  choose_skinny(plan.unroll, 2);
  if (blocks < 8 * wave && plan.ahead < 0) plan.ahead = 1;
}

void plan_skinny_tiles(const SkinnyShape& shape, SkinnyPlan& plan) {
  const int values = 16 / static_cast<int>(scalar_size(shape.weight_type));
  const auto tiles = static_cast<unsigned>(ceil_div(shape.m, 8));
  choose_skinny(plan.columns, std::bit_ceil(tiles));
  const bool narrow = scalar_size(shape.weight_type) == 1;
  if (narrow && takes_byte_tiles(shape)) plan_byte_tiles(shape, plan);
  if (narrow && is_few_byte_rows(shape)) plan_few_byte_rows(shape, plan);
  const bool real = shape.clusters && shape.weight_type == shape.x_type;
  const bool few = real && plan.columns == 1 && shape.batches == 1;
  const bool large = real && is_large_skinny(shape);
  const bool middle = few && shape.n * shape.k >= kMiddleSkinny;
  if (middle) plan_small_blocks(shape, plan);
  if (large && few) plan_large_tiles(shape, plan);
  choose_skinny(plan.warps, 8);
  choose_skinny(plan.rows, 1);
  if (plan.hint < 0) plan.hint = large || middle ? 1 : 0;
  if (middle && !large && plan.ahead < 0) plan.ahead = 1;
  const int loads = plan.columns <= 2 ? 4 : plan.columns == 4 ? 2 : 1;
  choose_skinny(plan.unroll, std::max(1, values == 16 ? loads / 2 : loads));
  const std::int64_t groups = ceil_div(shape.k, std::int64_t{4} * values * plan.unroll);
  const std::int64_t blocks = ceil_div(shape.n, std::int64_t{16} * plan.rows) * shape.batches;
  choose_skinny_splits(plan, shape.multiprocessors / 2, blocks, groups / plan.warps);
}

constexpr std::int64_t kShortSkinnyDot = 4;  ///< loads of a warp that a row has, fewer than these

/// Loads of a warp that a row of the weights has.
std::int64_t skinny_dot_loads(const SkinnyShape& shape, int width) {
  return ceil_div(shape.k, std::int64_t{32} * width);
}

/// Measured on an H100 and an H200: one row of x, and two of large weights whose blocks all run at
/// once, are faster without the tensor cores, unless the rows of the weights are short. `always`:
/// of more rows as well.
bool suits_dots(const SkinnyShape& shape, bool always) {
  const bool few = shape.m == 1 || (shape.m == 2 && is_large_skinny(shape) && fits_one_wave(shape));
  return (few || always) && shape.clusters && shape.batches == 1 &&
         shape.weight_type == shape.x_type &&
         skinny_dot_loads(shape, shape.width) >= kShortSkinnyDot;
}

/// Few loads in flight of each of several rows of the weights, so that a multiprocessor has many
/// warps. Fewer rows where blocks would leave multiprocessors idle. Measured on both as well.
void plan_dot_rows(const SkinnyShape& shape, std::int64_t loads, SkinnyPlan& plan) {
  const bool floats = shape.x_type == ScalarType::float32;
  if (shape.m > 1) choose_skinny(plan.warps, floats && shape.m == 2 ? 8 : 4);
  std::int64_t rows = shape.m == 2 || shape.m > 4 ? 8 : 4;
  if (floats && shape.m == 2) rows = 4;
  if (!floats && shape.m == 1 && loads < 16) rows = 2;
  const auto each = static_cast<std::uint64_t>(shape.n / shape.multiprocessors);
  choose_skinny(plan.rows, std::clamp<std::int64_t>(std::bit_floor(each), 1, rows));
  choose_skinny(plan.unroll, floats ? 2 : 1);
  const bool one_wave = is_large_skinny(shape) && fits_one_wave(shape);
  if (!floats && shape.m > 1 && one_wave && plan.ahead < 0) plan.ahead = 1;
}

void plan_skinny_dot(const SkinnyShape& shape, SkinnyPlan& plan) {
  choose_skinny(plan.width, shape.width);
  choose_skinny(plan.columns, std::min(8u, std::bit_ceil(static_cast<unsigned>(shape.m))));
  const std::int64_t loads = skinny_dot_loads(shape, plan.width);
  const bool floats = shape.x_type == ScalarType::float32 && shape.m <= 8 &&
                      shape.n >= std::int64_t{8} * shape.multiprocessors;
  if (suits_dots(shape, floats)) plan_dot_rows(shape, loads, plan);
  choose_skinny(plan.warps, loads >= 16 ? 8 : loads >= kShortSkinnyDot ? 4 : 1);
  choose_skinny(plan.rows, plan.columns * plan.width > 32 ? 1 : 2);
  choose_skinny(plan.unroll, plan.columns * plan.width > 16 ? 2 : 4);
  const std::int64_t blocks =
      ceil_div(shape.n, plan.rows) * ceil_div(shape.m, plan.columns) * shape.batches;
  choose_skinny_splits(plan, shape.multiprocessors / 2, blocks,
                       loads / (std::int64_t{2} * plan.warps * plan.unroll));
  const bool halves = shape.x_type != ScalarType::float32;
  // The kernel uses PDL and fetches one load of each row: a step of Llama-3.2-1B takes 0.948 ms
  // on an H200, 0.952 if nothing is fetched, 0.968 with as many loads as 16 MB of L2 hold.
  if (halves && shape.m == 1 && suits_dots(shape, false) && plan.ahead < 0) plan.ahead = 1;
}

// ---- rows of the weights that begin where no pack may

constexpr std::int64_t kShiftedSkinnyPacks = 32;  ///< of a row, at least: one for each lane

/// Whether the kernel is `wanted` and fits, or loads of less than 16 bytes would leave most of the
/// memory's rate unused.
bool takes_skinny_shifted(const SkinnyShape& shape, SkinnyKernel wanted) {
  const bool gains = wanted == SkinnyKernel::chosen && shape.m <= 8 && load_bytes(shape) < 16;
  return (gains || wanted == SkinnyKernel::shifted) && shape.weight_type == shape.x_type &&
         shape.k * scalar_size(shape.x_type) >= std::int64_t{16} * kShiftedSkinnyPacks;
}

/// Several rows of the weights share the loads of x.
void plan_skinny_shifted(const SkinnyShape& shape, SkinnyPlan& plan) {
  const int width = 16 / static_cast<int>(scalar_size(shape.weight_type));
  plan.width = width;
  choose_skinny(plan.columns, std::min(8u, std::bit_ceil(static_cast<unsigned>(shape.m))));
  const std::int64_t loads = skinny_dot_loads(shape, width);
  choose_skinny(plan.warps, loads >= 16 ? 8 : loads >= kShortSkinnyDot ? 4 : 1);
  const auto each = static_cast<std::uint64_t>(shape.n / shape.multiprocessors);
  choose_skinny(plan.rows, std::clamp<std::int64_t>(std::bit_floor(each), 1, shape.m > 2 ? 2 : 4));
  const std::int64_t blocks =
      ceil_div(shape.n, plan.rows) * ceil_div(shape.m, plan.columns) * shape.batches;
  choose_skinny_splits(plan, shape.multiprocessors / 2, blocks, loads / (2 * plan.warps));
  plan.hint = plan.ahead = 0;
  plan.unroll = 1;
}

// ---- weights of one byte and one row of x

constexpr std::int64_t kSkinnyRowPart = 512;     ///< of k, of a warp
constexpr int kSkinnyRowWarps = 16;              ///< of all blocks of a multiprocessor, at most
constexpr std::int64_t kMostSkinnyRowParts = 2;  ///< of a warp

/// Blocks of a multiprocessor, as skinny_row.cu has them; and the warps of these blocks.
std::int64_t resident_row_blocks(std::int64_t warps) { return kSkinnyRowWarps / warps; }
std::int64_t resident_row_warps(std::int64_t warps) { return resident_row_blocks(warps) * warps; }

/// Of a block, so that a multiprocessor has as many as it can; with one part of k rather than two.
std::int64_t skinny_row_warps(std::int64_t k) {
  const std::int64_t one = std::max<std::int64_t>(1, ceil_div(k, kSkinnyRowPart));
  const std::int64_t two = ceil_div(one, 2);
  return resident_row_warps(one) >= resident_row_warps(two) ? one : two;
}

/// Whether the kernel is `wanted` and fits, or the sizes are like those measured on an H100 and an
/// H200: long rows that fill the multiprocessors. Tiles are faster where rows are longer than one
/// part of k for each warp.
bool takes_skinny_row(const SkinnyShape& shape, SkinnyKernel wanted) {
  const bool fits = shape.m == 1 && shape.batches == 1 && scalar_size(shape.weight_type) == 1 &&
                    shape.k <= kSkinnyRowPart * kSkinnyRowWarps * kMostSkinnyRowParts;
  if (!fits || wanted != SkinnyKernel::chosen) return fits && wanted == SkinnyKernel::row;
  return shape.clusters && is_large_skinny(shape) && shape.k > 6 * kSkinnyRowPart &&
         shape.k <= kSkinnyRowWarps * kSkinnyRowPart &&
         shape.n >= std::int64_t{8} * shape.multiprocessors &&
         resident_row_warps(skinny_row_warps(shape.k)) >= 14;
}

void plan_skinny_row(const SkinnyShape& shape, SkinnyPlan& plan) {
  const bool fits = plan.warps >= 1 && plan.warps <= kSkinnyRowWarps &&
                    shape.k <= kSkinnyRowPart * kMostSkinnyRowParts * plan.warps;
  if (!fits) plan.warps = static_cast<int>(skinny_row_warps(shape.k));
  plan.rows = 8;
  plan.columns = 1;
  const std::int64_t parts = ceil_div(shape.k, kSkinnyRowPart * plan.warps);
  plan.unroll = static_cast<int>(std::max<std::int64_t>(1, parts));
  plan.hint = 0;
  plan.splits = 1;
  if (plan.ahead < 0) plan.ahead = 1;
}

constexpr int kSkinnyStagedBytes = 98304;  ///< that every device of capability 8.0 and newer has

/// Whether rows begin at multiples of 4 or 8 bytes, which the kernel with stages copies apart.
bool takes_staged_parts(const SkinnyShape& shape, SkinnyKernel wanted) {
  const int bytes = load_bytes(shape);
  const bool halves = is_half(shape.x_type) && shape.weight_type == shape.x_type;
  const bool open = wanted == SkinnyKernel::chosen && shape.m > 8;
  return shape.tensor_cores && halves && !shape.by_columns && bytes < 16 &&
         bytes >= kLeastStagedCopy && (open || wanted == SkinnyKernel::staged);
}

/// Four blocks or more share k, unless there are as many without splits as multiprocessors, or
/// twice as many with more rows of x. Measured on an H200.
void plan_staged_parts(const SkinnyShape& shape, SkinnyPlan& plan) {
  choose_skinny(plan.warps, 4);
  choose_skinny(plan.rows, 1);
  const std::int64_t blocks =
      ceil_div(shape.n, std::int64_t{16} * plan.rows * plan.warps) * shape.batches;
  const bool many = blocks >= (shape.m <= 16 ? 1 : 2) * shape.multiprocessors;
  const std::int64_t wanted =
      many ? 1 : std::clamp<std::int64_t>(shape.multiprocessors / blocks, 4, kMostSkinnyCluster);
  const std::int64_t most = std::max<std::int64_t>(1, shape.k / 256);
  choose_skinny(plan.splits, std::min(wanted, most));
}

void plan_skinny_staged(const SkinnyShape& shape, SkinnyPlan& plan) {
  plan.width = shape.width;
  if (load_bytes(shape) < 16) plan_staged_parts(shape, plan);
  choose_skinny(plan.columns, std::bit_ceil(static_cast<unsigned>(ceil_div(shape.m, 8))));
  choose_skinny(plan.warps, 4);
  // Blocks with fewer rows of the weights, and so more of them, but where there are very many.
  const bool low = is_byte_skinny(shape) &&
                   (shape.m <= 32 || shape.n < std::int64_t{256} * shape.multiprocessors);
  choose_skinny(plan.rows, low ? 1 : 2);
  if (plan.unroll < 2) {
    plan.unroll = 4;
    while (plan.unroll > 2 && skinny_shared_bytes(shape, plan) > kSkinnyStagedBytes) --plan.unroll;
  }
  const std::int64_t depth = std::int64_t{128} / scalar_size(shape.weight_type);
  const std::int64_t rows = std::int64_t{16} * plan.rows * plan.warps;
  const std::int64_t chunks = ceil_div(shape.k, depth);
  const std::int64_t most = low ? 2 : kMostSkinnyCluster;
  choose_skinny_splits(plan, 2 * shape.multiprocessors, ceil_div(shape.n, rows) * shape.batches,
                       std::min<std::int64_t>(most, chunks / 4));
  plan.clustered = shape.clusters && plan.splits > 1 && plan.splits <= kMostSkinnyCluster;
}

void plan_skinny_column_tiles(const SkinnyShape& shape, SkinnyPlan& plan) {
  choose_skinny(plan.columns, std::bit_ceil(static_cast<unsigned>(ceil_div(shape.m, 8))));
  choose_skinny(plan.warps, 8);
  choose_skinny(plan.unroll, plan.columns <= 2 ? 2 : 1);
  const std::int64_t blocks = ceil_div(shape.n, 64) * shape.batches;
  choose_skinny_splits(plan, 2 * shape.multiprocessors, blocks,
                       shape.k / (std::int64_t{16} * plan.unroll * plan.warps));
}

void plan_skinny_columns(const SkinnyShape& shape, SkinnyPlan& plan) {
  choose_skinny(plan.width, std::min(shape.width, 8));
  const auto rows = std::bit_ceil(static_cast<unsigned>(shape.m));
  choose_skinny(plan.columns, std::min<std::int64_t>({rows, 8, 32 / plan.width}));
  choose_skinny(plan.warps, 8);
  choose_skinny(plan.unroll, 4);
  const std::int64_t blocks = ceil_div(shape.n, std::int64_t{32} * plan.width) *
                              ceil_div(shape.m, plan.columns) * shape.batches;
  choose_skinny_splits(plan, 2 * shape.multiprocessors, blocks,
                       shape.k / (std::int64_t{2} * plan.warps * plan.unroll));
}

// Largest number of rows of x for the kernels without TMA tiles.
constexpr std::int64_t kFewSkinnyRows = 8;
constexpr std::int64_t kFewSkinnyColumnRows = 16;

SkinnyKernel skinny_kernel_for(const SkinnyShape& shape, SkinnyKernel wanted) {
  const bool halves = shape.tensor_cores && is_half(shape.x_type) && load_bytes(shape) == 16;
  const std::int64_t few = shape.by_columns ? kFewSkinnyColumnRows : kFewSkinnyRows;
  const bool open = wanted == SkinnyKernel::chosen && shape.m > few;
  const bool takes_bytes =
      wanted == SkinnyKernel::bytes ? fits_skinny_bytes(shape) : open && takes_skinny_bytes(shape);
  if (takes_bytes) return SkinnyKernel::bytes;
  const bool tma_tiles = shape.tma_tiles && shape.weight_type == shape.x_type;
  if (tma_tiles && (wanted == SkinnyKernel::wgmma || open)) return SkinnyKernel::wgmma;
  if (shape.by_columns) {
    const bool fits = halves && shape.weight_type == shape.x_type && shape.pairs;
    return fits && wanted != SkinnyKernel::columns ? SkinnyKernel::column_tiles
                                                   : SkinnyKernel::columns;
  }
  if (takes_staged_parts(shape, wanted)) return SkinnyKernel::staged;
  if (takes_skinny_shifted(shape, wanted)) return SkinnyKernel::shifted;
  if (!halves || wanted == SkinnyKernel::dot) return SkinnyKernel::dot;
  if (takes_skinny_row(shape, wanted)) return SkinnyKernel::row;
  if (wanted == SkinnyKernel::tiles || wanted == SkinnyKernel::staged) return wanted;
  if (shape.m > 8) return takes_byte_tiles(shape) ? SkinnyKernel::tiles : SkinnyKernel::staged;
  const bool dots = wanted == SkinnyKernel::chosen && suits_dots(shape, false);
  return dots ? SkinnyKernel::dot : SkinnyKernel::tiles;
}

/// The kernel, and its open points by the rows of `shape`.
SkinnyPlan plan_skinny_kernel(const SkinnyShape& shape, SkinnyPlan wanted) {
  wanted.kernel = skinny_kernel_for(shape, wanted.kernel);
  switch (wanted.kernel) {
    case SkinnyKernel::tiles:
      plan_skinny_tiles(shape, wanted);
      break;
    case SkinnyKernel::staged:
      plan_skinny_staged(shape, wanted);
      break;
    case SkinnyKernel::column_tiles:
      plan_skinny_column_tiles(shape, wanted);
      break;
    case SkinnyKernel::columns:
      plan_skinny_columns(shape, wanted);
      break;
    case SkinnyKernel::wgmma:
      plan_skinny_wgmma(shape, wanted);
      break;
    case SkinnyKernel::bytes:
      plan_skinny_bytes(shape, wanted);
      break;
    case SkinnyKernel::row:
      plan_skinny_row(shape, wanted);
      break;
    case SkinnyKernel::shifted:
      plan_skinny_shifted(shape, wanted);
      break;
    default:
      plan_skinny_dot(shape, wanted);
  }
  if (wanted.hint < 0) wanted.hint = 0;
  if (!shape.overlapping) wanted.ahead = 0;
  if (wanted.ahead < 0) wanted.ahead = 0;
  return wanted;
}

}  // namespace

std::int64_t skinny_blocks(const SkinnyShape& shape, const SkinnyPlan& plan) {
  switch (plan.kernel) {
    case SkinnyKernel::tiles:
    case SkinnyKernel::bytes:
      return ceil_div(shape.n, 16 * plan.rows);
    case SkinnyKernel::column_tiles:
      return ceil_div(shape.n, 64);
    case SkinnyKernel::staged:
    case SkinnyKernel::wgmma:
      return ceil_div(shape.n, 16 * plan.rows * plan.warps);
    case SkinnyKernel::row:
      return std::min<std::int64_t>(ceil_div(shape.n, plan.rows),
                                    shape.multiprocessors * resident_row_blocks(plan.warps));
    default:
      break;
  }
  const bool columns = plan.kernel == SkinnyKernel::columns;
  return ceil_div(shape.n, columns ? 32 * plan.width : plan.rows) * ceil_div(shape.m, plan.columns);
}

int skinny_shared_bytes(const SkinnyShape& shape, const SkinnyPlan& plan) {
  const int values = 16 / static_cast<int>(scalar_size(shape.weight_type));
  const int rows = 16 * plan.rows * plan.warps, columns = 8 * plan.columns;
  if (plan.kernel == SkinnyKernel::wgmma) {
    const int stages = plan.stages * (rows + columns) * 128, barriers = 16 * plan.stages;
    if (!sends_skinny_accumulators(plan))
      return std::max(stages, columns * (rows + 4) * 4) + barriers;
    const int splits = std::max(1, plan.splits), owned = ceil_div(plan.warps, splits);
    return stages + (splits - 1) * owned * columns * 64 + barriers + 8;
  }
  if (plan.kernel == SkinnyKernel::bytes) {
    const int accumulators = plan.unroll * columns * (16 * plan.rows + 4) * 4;
    return std::max(plan.stages * (16 * plan.rows + 2 * columns) * 128, accumulators) +
           16 * plan.stages;
  }
  if (plan.kernel != SkinnyKernel::staged) return 0;
  const int stages = plan.unroll * (rows * 128 + columns * values * 16);
  return std::max(stages, columns * (rows + 4) * 4);
}

SkinnyPlan plan_skinny_normed(const SkinnyShape& shape, SkinnyPlan plan) {
  const bool fills = shape.n >= std::int64_t{4} * shape.multiprocessors;
  const bool short_rows = plan.kernel == SkinnyKernel::dot && plan.rows == 2 && plan.unroll == 1;
  if (fills && short_rows && scalar_size(shape.x_type) == 2) plan.rows = 4, plan.unroll = 2;
  return plan;
}

SkinnyPlan plan_skinny(const SkinnyShape& shape, SkinnyPlan wanted) {
  SkinnyShape planned = shape;
  planned.m = planned_rows(shape.m);
  if (planned.m != shape.m) {
    const SkinnyPlan common = plan_skinny_kernel(planned, wanted);
    wanted.kernel = common.kernel;
    wanted.warps = common.warps;
    wanted.splits = common.splits;
  }
  return plan_skinny_kernel(shape, wanted);
}

}  // namespace kernwright::kernels
