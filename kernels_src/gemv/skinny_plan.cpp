// The choice among the kernels for few rows and their parameters.
#include "kernels_src/gemv/skinny_plan.h"

#include <algorithm>
#include <bit>

namespace kernwright::kernels {
namespace {

std::int64_t skinny_parts(std::int64_t count, std::int64_t each) {
  return (count + each - 1) / each;
}

void choose_skinny(int& parameter, std::int64_t value) {
  if (parameter <= 0) parameter = static_cast<int>(value);
}

/// Blocks share k only where there are too few of them, below `busy`.
void choose_skinny_splits(SkinnyPlan& plan, std::int64_t busy, std::int64_t blocks,
                          std::int64_t most) {
  choose_skinny(plan.splits, std::clamp<std::int64_t>(busy / std::max<std::int64_t>(1, blocks), 1,
                                                      std::max<std::int64_t>(1, most)));
}

/// Weights of sizes that were measured with other choices than small ones have.
constexpr std::int64_t kLargeSkinny = std::int64_t{1} << 24;
bool is_large_skinny(const SkinnyShape& shape) { return shape.n * shape.k >= kLargeSkinny; }

// ---- weights of one byte and more than 8 rows of x: measured on an H100

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

/// Two tiles of rows of the weights share the loads of x.
void plan_byte_tiles(const SkinnyShape& shape, SkinnyPlan& plan) {
  const bool many = shape.m <= 16 && shape.n >= std::int64_t{64} * shape.multiprocessors;
  choose_skinny(plan.rows, 2);
  choose_skinny(plan.warps, many ? 4 : 8);
  choose_skinny(plan.unroll, many ? 2 : 1);
  if (plan.hint < 0) plan.hint = 1;
}

/// Two loads in flight; blocks of 16 warps, unless they fill only a part of their second or later
/// waves. Measured on an H100 and an H200 with 8 rows of x.
void plan_large_tiles(const SkinnyShape& shape, SkinnyPlan& plan) {
  const std::int64_t wave = std::int64_t{2} * shape.multiprocessors;
  const std::int64_t blocks = skinny_parts(shape.n, 16);
  choose_skinny(plan.warps, blocks <= wave || blocks >= 8 * wave ? 16 : 8);
  choose_skinny(plan.unroll, 2);
}

void plan_skinny_tiles(const SkinnyShape& shape, SkinnyPlan& plan) {
  const int values = 16 / static_cast<int>(scalar_size(shape.weight_type));
  const auto tiles = static_cast<unsigned>(skinny_parts(shape.m, 8));
  choose_skinny(plan.columns, std::bit_ceil(tiles));
  if (plan.kernel == SkinnyKernel::tiles && takes_byte_tiles(shape)) plan_byte_tiles(shape, plan);
  const bool large = plan.kernel == SkinnyKernel::tiles && shape.clusters &&
                     shape.weight_type == shape.x_type && is_large_skinny(shape);
  if (large && plan.columns == 1 && shape.batches == 1) plan_large_tiles(shape, plan);
  choose_skinny(plan.warps, 8);
  choose_skinny(plan.rows, 1);
  choose_skinny(plan.stages, 4);
  if (plan.kernel == SkinnyKernel::ring) choose_skinny(plan.unroll, 2);
  if (plan.hint < 0) plan.hint = large ? 1 : 0;
  const int loads = plan.columns <= 2 ? 4 : plan.columns == 4 ? 2 : 1;
  choose_skinny(plan.unroll, std::max(1, values == 16 ? loads / 2 : loads));
  const std::int64_t groups = skinny_parts(shape.k, std::int64_t{4} * values * plan.unroll);
  const std::int64_t blocks = skinny_parts(shape.n, std::int64_t{16} * plan.rows) * shape.batches;
  choose_skinny_splits(plan, shape.multiprocessors / 2, blocks, groups / plan.warps);
}

constexpr std::int64_t kShortSkinnyDot = 4;  ///< loads of a warp that a row has, fewer than these

/// Loads of a warp that a row of the weights has.
std::int64_t skinny_dot_loads(const SkinnyShape& shape, int width) {
  return skinny_parts(shape.k, std::int64_t{32} * width);
}

bool fits_skinny_dots(const SkinnyShape& shape) {
  return shape.clusters && shape.batches == 1 && shape.weight_type == shape.x_type &&
         skinny_dot_loads(shape, shape.width) >= kShortSkinnyDot;
}

/// Measured on an H100 and an H200: one row of x, and two of large weights, are faster without the
/// tensor cores, unless the rows of the weights are short.
bool skinny_dots(const SkinnyShape& shape) {
  return fits_skinny_dots(shape) && (shape.m == 1 || (shape.m == 2 && is_large_skinny(shape)));
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
}

void plan_skinny_dot(const SkinnyShape& shape, SkinnyPlan& plan) {
  choose_skinny(plan.width, shape.width);
  choose_skinny(plan.columns, std::min(8u, std::bit_ceil(static_cast<unsigned>(shape.m))));
  const std::int64_t loads = skinny_dot_loads(shape, plan.width);
  const bool floats = shape.x_type == ScalarType::float32 && shape.m <= 8 &&
                      shape.n >= std::int64_t{8} * shape.multiprocessors;
  if (skinny_dots(shape) || (floats && fits_skinny_dots(shape))) plan_dot_rows(shape, loads, plan);
  choose_skinny(plan.warps, loads >= 16 ? 8 : loads >= kShortSkinnyDot ? 4 : 1);
  choose_skinny(plan.rows, plan.columns * plan.width > 32 ? 1 : 2);
  choose_skinny(plan.unroll, plan.columns * plan.width > 16 ? 2 : 4);
  const std::int64_t blocks =
      skinny_parts(shape.n, plan.rows) * skinny_parts(shape.m, plan.columns) * shape.batches;
  choose_skinny_splits(plan, shape.multiprocessors / 2, blocks,
                       loads / (std::int64_t{2} * plan.warps * plan.unroll));
}

// ---- weights of one byte and one row of x

constexpr std::int64_t kSkinnyRowPart = 512;     ///< of k, of a warp
constexpr int kSkinnyRowWarps = 16;              ///< of all blocks of a multiprocessor, at most
constexpr std::int64_t kMostSkinnyRowParts = 2;  ///< of a warp

/// Warps of a multiprocessor with blocks of so many.
std::int64_t resident_row_warps(std::int64_t warps) {
  return warps > kSkinnyRowWarps ? 0 : kSkinnyRowWarps / warps * warps;
}

/// Of a block, so that a multiprocessor has as many as it can; with one part of k rather than two.
std::int64_t skinny_row_warps(std::int64_t k) {
  const std::int64_t one = std::max<std::int64_t>(1, skinny_parts(k, kSkinnyRowPart));
  const std::int64_t two = skinny_parts(one, 2);
  return resident_row_warps(one) >= resident_row_warps(two) ? one : two;
}

/// 16-bit x, and rows that begin at multiples of 16 bytes, are what all tensor core kernels want.
bool fits_skinny_row(const SkinnyShape& shape) {
  return shape.m == 1 && shape.batches == 1 && scalar_size(shape.weight_type) == 1 &&
         shape.k <= kSkinnyRowPart * kSkinnyRowWarps * kMostSkinnyRowParts;
}

/// Sizes as those that were measured on an H100: of long rows which fill the multiprocessors.
bool takes_skinny_row(const SkinnyShape& shape) {
  return fits_skinny_row(shape) && shape.clusters && is_large_skinny(shape) &&
         shape.k > 6 * kSkinnyRowPart && shape.n >= std::int64_t{8} * shape.multiprocessors &&
         resident_row_warps(skinny_row_warps(shape.k)) >= 14;
}

void plan_skinny_row(const SkinnyShape& shape, SkinnyPlan& plan) {
  const bool fits = plan.warps >= 1 && plan.warps <= kSkinnyRowWarps &&
                    shape.k <= kSkinnyRowPart * kMostSkinnyRowParts * plan.warps;
  if (!fits) plan.warps = static_cast<int>(skinny_row_warps(shape.k));
  plan.rows = 8;
  plan.columns = 1;
  const std::int64_t parts = skinny_parts(shape.k, kSkinnyRowPart * plan.warps);
  plan.unroll = static_cast<int>(std::max<std::int64_t>(1, parts));
  plan.hint = 0;
  plan.splits = 1;
  if (plan.ahead < 0) plan.ahead = 1;
}

constexpr int kSkinnyStagedBytes = 98304;  ///< that every device of capability 8.0 and newer has
constexpr int kMostSkinnyCluster = 8;

void plan_skinny_staged(const SkinnyShape& shape, SkinnyPlan& plan) {
  choose_skinny(plan.columns, std::bit_ceil(static_cast<unsigned>(skinny_parts(shape.m, 8))));
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
  const std::int64_t chunks = skinny_parts(shape.k, depth);
  const std::int64_t most = low ? 2 : kMostSkinnyCluster;
  choose_skinny_splits(plan, 2 * shape.multiprocessors, skinny_parts(shape.n, rows) * shape.batches,
                       std::min<std::int64_t>(most, chunks / 4));
  plan.clustered = shape.clusters && plan.splits > 1 && plan.splits <= kMostSkinnyCluster;
}

void plan_skinny_column_tiles(const SkinnyShape& shape, SkinnyPlan& plan) {
  choose_skinny(plan.columns, std::bit_ceil(static_cast<unsigned>(skinny_parts(shape.m, 8))));
  choose_skinny(plan.warps, 8);
  choose_skinny(plan.unroll, plan.columns <= 2 ? 2 : 1);
  const std::int64_t blocks = skinny_parts(shape.n, 64) * shape.batches;
  choose_skinny_splits(plan, 2 * shape.multiprocessors, blocks,
                       shape.k / (std::int64_t{16} * plan.unroll * plan.warps));
}

void plan_skinny_columns(const SkinnyShape& shape, SkinnyPlan& plan) {
  choose_skinny(plan.width, std::min(shape.width, 8));
  const auto rows = std::bit_ceil(static_cast<unsigned>(shape.m));
  choose_skinny(plan.columns, std::min<std::int64_t>({rows, 8, 32 / plan.width}));
  choose_skinny(plan.warps, 8);
  choose_skinny(plan.unroll, 4);
  const std::int64_t blocks = skinny_parts(shape.n, std::int64_t{32} * plan.width) *
                              skinny_parts(shape.m, plan.columns) * shape.batches;
  choose_skinny_splits(plan, 2 * shape.multiprocessors, blocks,
                       shape.k / (std::int64_t{2} * plan.warps * plan.unroll));
}

constexpr std::int64_t kSkinnyBoxBytes = 225280;  // of the blocks of a multiprocessor

/// Eight where they are enough for most multiprocessors; else four, so that there are more blocks.
int skinny_box_warps(const SkinnyShape& shape) {
  const std::int64_t blocks = skinny_parts(shape.n, 128) * shape.batches;
  return shape.by_columns || 4 * blocks >= std::int64_t{3} * shape.multiprocessors ? 8 : 4;
}

/// Blocks share k until there is one for each multiprocessor, or two if they have many columns.
/// Measured on an H100.
void plan_skinny_wgmma(const SkinnyShape& shape, SkinnyPlan& plan) {
  const auto tiles = static_cast<unsigned>(skinny_parts(shape.m, 8));
  choose_skinny(plan.columns, std::max(2u, std::bit_ceil(tiles)));
  choose_skinny(plan.warps, skinny_box_warps(shape));
  plan.rows = 1;
  const std::int64_t blocks = skinny_parts(shape.n, std::int64_t{16} * plan.warps) * shape.batches;
  const std::int64_t busy = std::int64_t{plan.columns > 2 ? 2 : 1} * shape.multiprocessors;
  const std::int64_t most = std::min<std::int64_t>(kMostSkinnyCluster, skinny_parts(shape.k, 256));
  choose_skinny(plan.splits, std::clamp<std::int64_t>((busy + blocks / 2) / blocks, 1,
                                                      std::max<std::int64_t>(1, most)));
  plan.splits = std::min(plan.splits, kMostSkinnyCluster);
  plan.clustered = plan.splits > 1;
  if (plan.stages >= 2) return;
  // A cluster waits until all of its blocks have a place, so there is room for one block more.
  const std::int64_t beside = skinny_parts(blocks * plan.splits, shape.multiprocessors) + 1;
  plan.stages = 8;
  while (plan.stages > 3 &&
         skinny_shared_bytes(shape, plan) > kSkinnyBoxBytes / std::min<std::int64_t>(3, beside)) {
    --plan.stages;
  }
}

constexpr int kWholeRows = 32;              ///< of the weights, of a block
constexpr std::int64_t kFewWholeRows = 32;  ///< of x, that are left to other kernels
constexpr std::int64_t kFewLongRows = 48;   ///< the same where the weights are
constexpr std::int64_t kLongWhole = std::int64_t{1} << 25;  ///< numbers or more

bool fits_skinny_whole(const SkinnyShape& shape) {
  return shape.boxes && shape.weight_type == shape.x_type && !shape.by_columns &&
         shape.batches == 1;
}

bool takes_skinny_whole(const SkinnyShape& shape) {
  return fits_skinny_whole(shape) && shape.overlapping &&
         fills_whole_blocks(shape.m, shape.n, shape.k, shape.multiprocessors);
}

/// The next launch's blocks begin where these have ended.
void plan_skinny_whole(SkinnyPlan& plan) {
  plan.warps = 4;
  plan.rows = kWholeRows / 16;
  plan.columns = 8;
  plan.splits = 1;
  plan.clustered = false;
  if (plan.stages < 2 || plan.stages > 18) plan.stages = 16;
  if (plan.ahead < 0) plan.ahead = 1;
}

// ---- weights of one byte by warpgroups

bool fits_skinny_bytes(const SkinnyShape& shape) {
  return shape.boxes && scalar_size(shape.weight_type) == 1 && shape.batches == 1;
}

constexpr std::int64_t kByteRows = 1024;                   ///< of the weights, at least
constexpr std::int64_t kByteSize = std::int64_t{1} << 20;  ///< numbers of weights, at least

/// Measured on an H100.
bool takes_skinny_bytes(const SkinnyShape& shape) {
  const std::int64_t size = shape.n * shape.k, blocks = skinny_parts(shape.n, 64);
  if (!fits_skinny_bytes(shape) || !shape.overlapping) return false;
  if (shape.m > 16) return shape.n >= kByteRows && size >= kByteSize;
  // Fewer rows of x gain where two blocks that share k occupy most multiprocessors.
  return size >= kLargeSkinny && 2 * blocks <= shape.multiprocessors &&
         8 * blocks >= std::int64_t{3} * shape.multiprocessors;
}

/// Blocks have 64 rows of the weights, or 128 if there are more of them than multiprocessors. As
/// many blocks share k as run at once. A block has 8 warps; 16 if it has more rows, or all of k, or
/// few rows of x.
void plan_skinny_bytes(const SkinnyShape& shape, SkinnyPlan& plan) {
  const auto tiles = static_cast<unsigned>(skinny_parts(shape.m, 8));
  choose_skinny(plan.columns, std::max(2u, std::bit_ceil(tiles)));
  const std::int64_t blocks = skinny_parts(shape.n, 64);
  const bool high = blocks > shape.multiprocessors;
  if (plan.splits <= 0) {
    plan.splits = std::clamp<int>(static_cast<int>(shape.k / 512), 1, kMostSkinnyCluster);
    while (plan.splits > 1 && blocks > clusters_at_once(plan.splits, shape.multiprocessors))
      --plan.splits;
  }
  plan.splits = std::min(plan.splits, kMostSkinnyCluster);
  plan.clustered = plan.splits > 1;
  choose_skinny(plan.unroll, high || (plan.clustered && shape.m > 16) ? 2 : 4);
  const int least = 4 * plan.unroll;  // a warpgroup for each team
  if (plan.warps < least || plan.warps % least != 0)
    plan.warps = high && plan.unroll <= 2 ? 2 * least : least;
  plan.rows = plan.warps / plan.unroll;
  if (plan.ahead < 0) plan.ahead = 1;
  const int teams = plan.unroll;  // none shares stages with others
  const bool open = plan.stages <= 0;
  plan.stages = std::max(teams, (open ? 8 : plan.stages) / teams * teams);
  while (open && plan.stages > teams && skinny_shared_bytes(shape, plan) > kSkinnyBoxBytes)
    plan.stages -= teams;
}

// Largest number of rows of x for the kernels without boxes.
constexpr std::int64_t kFewSkinnyRows = 8;
constexpr std::int64_t kFewSkinnyRowsOfColumns = 16;

SkinnyKernel skinny_kernel_for(const SkinnyShape& shape, SkinnyKernel wanted) {
  const auto bytes = static_cast<int>(scalar_size(shape.weight_type)) * shape.width;
  const bool halves = shape.tensor_cores && shape.x_type != ScalarType::float32 && bytes == 16;
  const std::int64_t few = shape.by_columns ? kFewSkinnyRowsOfColumns : kFewSkinnyRows;
  const bool open = wanted == SkinnyKernel::chosen && shape.m > few;
  const bool whole =
      wanted == SkinnyKernel::whole ? fits_skinny_whole(shape) : open && takes_skinny_whole(shape);
  if (whole) return SkinnyKernel::whole;
  const bool of_bytes =
      wanted == SkinnyKernel::bytes ? fits_skinny_bytes(shape) : open && takes_skinny_bytes(shape);
  if (of_bytes) return SkinnyKernel::bytes;
  const bool boxes = shape.boxes && shape.weight_type == shape.x_type;
  if (boxes && (wanted == SkinnyKernel::wgmma || open)) return SkinnyKernel::wgmma;
  if (shape.by_columns) {
    const bool fits = halves && shape.weight_type == shape.x_type && shape.pairs;
    return fits && wanted != SkinnyKernel::columns ? SkinnyKernel::column_tiles
                                                   : SkinnyKernel::columns;
  }
  if (!halves || wanted == SkinnyKernel::dot) return SkinnyKernel::dot;
  const bool row = wanted == SkinnyKernel::row
                       ? fits_skinny_row(shape)
                       : wanted == SkinnyKernel::chosen && takes_skinny_row(shape);
  if (row) return SkinnyKernel::row;
  if (wanted == SkinnyKernel::tiles || wanted == SkinnyKernel::staged ||
      wanted == SkinnyKernel::ring) {
    return wanted;
  }
  if (shape.m > 8) return takes_byte_tiles(shape) ? SkinnyKernel::tiles : SkinnyKernel::staged;
  const bool dots = wanted == SkinnyKernel::chosen && skinny_dots(shape);
  return dots ? SkinnyKernel::dot : SkinnyKernel::tiles;
}

}  // namespace

int skinny_shared_bytes(const SkinnyShape& shape, const SkinnyPlan& plan) {
  const int values = 16 / static_cast<int>(scalar_size(shape.weight_type));
  const int rows = 16 * plan.rows * plan.warps, columns = 8 * plan.columns;
  if (plan.kernel == SkinnyKernel::wgmma) {
    return std::max(plan.stages * (rows + columns) * 128, columns * (rows + 4) * 4) +
           16 * plan.stages;
  }
  if (plan.kernel == SkinnyKernel::whole) return plan.stages * ((64 + 16 * plan.rows) * 128 + 16);
  if (plan.kernel == SkinnyKernel::bytes) {
    const int sums = plan.unroll * columns * (16 * plan.rows + 4) * 4;
    return std::max(plan.stages * (16 * plan.rows + 2 * columns) * 128, sums) + 16 * plan.stages;
  }
  if (plan.kernel == SkinnyKernel::ring)
    return plan.warps * plan.stages * plan.unroll * plan.rows * 1024;
  if (plan.kernel != SkinnyKernel::staged) return 0;
  const int stages = plan.unroll * (rows * 128 + columns * values * 16);
  return std::max(stages, columns * (rows + 4) * 4);
}

std::int64_t clusters_at_once(std::int64_t blocks, std::int64_t multiprocessors) {
  if (blocks <= 2) return multiprocessors / blocks;
  return std::max<std::int64_t>(1, multiprocessors / 16) * (12 / blocks);
}

// Measured on an H100 and an H200 for weights of 4096 rows.
bool fills_whole_blocks(std::int64_t m, std::int64_t n, std::int64_t k, int multiprocessors) {
  const std::int64_t blocks = skinny_parts(n, kWholeRows);
  return m > (n * k < kLongWhole ? kFewWholeRows : kFewLongRows) && m <= kSkinnyRows &&
         n * k >= kLargeSkinny && blocks <= multiprocessors &&
         4 * blocks >= std::int64_t{3} * multiprocessors;
}

SkinnyPlan plan_skinny(const SkinnyShape& shape, SkinnyPlan wanted) {
  wanted.kernel = skinny_kernel_for(shape, wanted.kernel);
  switch (wanted.kernel) {
    case SkinnyKernel::tiles:
    case SkinnyKernel::ring:
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
    case SkinnyKernel::whole:
      plan_skinny_whole(wanted);
      break;
    case SkinnyKernel::bytes:
      plan_skinny_bytes(shape, wanted);
      break;
    case SkinnyKernel::row:
      plan_skinny_row(shape, wanted);
      break;
    default:
      plan_skinny_dot(shape, wanted);
  }
  if (wanted.hint < 0) wanted.hint = 0;
  if (!shape.overlapping) wanted.ahead = 0;
  if (wanted.ahead < 0) wanted.ahead = 0;
  return wanted;
}

}  // namespace kernwright::kernels
