// The choices of the kernels for few rows whose operands come in TMA tiles.
#include "kernels_src/plans/skinny_tma_plan.h"

#include "base/math.h"

#include <algorithm>
#include <bit>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kSkinnyTileBytes = 225280;  // of the blocks of a multiprocessor
constexpr int kStagesAlone = 14;                   // of a block with more than half of them
constexpr std::int64_t kLongAlone = 4096;          // of k, of blocks that gain by it, at least
constexpr std::int64_t kLongAloneWhole = 3072;     // the same without splits

/// Eight warps where the blocks occupy most multiprocessors; else four, for more blocks.
int skinny_tma_warps(const SkinnyShape& shape) {
  const std::int64_t blocks = ceil_div(shape.n, 128) * shape.batches;
  return shape.by_columns || 4 * blocks >= std::int64_t{3} * shape.multiprocessors ? 8 : 4;
}

/// Whether clusters of three occupy most multiprocessors at once, and clusters of four would wait
/// for each other. Measured on an H200 for weights of 2048 rows, k of 4096 and 8192.
bool suits_threes(const SkinnyShape& shape, const SkinnyPlan& plan, std::int64_t blocks) {
  const std::int64_t all = shape.multiprocessors;
  return !shape.by_columns && shape.batches == 1 && sends_skinny_accumulators(plan) &&
         shape.k >= kLongAlone && blocks <= clusters_at_once(3, all) &&
         blocks > clusters_at_once(4, all) && 30 * blocks >= 7 * all;
}

/// Whether clusters of `splits` blocks, for up to 32 rows of x, gain by PDL: all run at once, or
/// four blocks share k where two leave a quarter of a second wave idle. Measured on an H200
/// (bfloat16: 16x1024x1024 4.0 -> 2.7 us, 24x3584x3584 10.0 -> 8.4, 24x5120x5120 16.7 -> 16.1).
bool suits_clusters(const SkinnyShape& shape, const SkinnyPlan& plan, std::int64_t blocks,
                    std::int64_t splits) {
  const std::int64_t all = shape.multiprocessors;
  if (shape.by_columns || shape.batches != 1 || plan.columns > 4 || splits < 2) return false;
  if (blocks <= clusters_at_once(splits, all)) return true;
  return splits == 4 && plan.columns == 4 && 2 * blocks > all && 3 * blocks <= 2 * all;
}

/// Blocks that share k: until there is one for each multiprocessor, or two if blocks have many
/// columns and two blocks would not fill one wave. Few columns have two blocks where one would
/// leave a quarter of the multiprocessors idle. Measured on an H100, these cases of two on an H200.
std::int64_t skinny_tma_splits(const SkinnyShape& shape, const SkinnyPlan& plan,
                               std::int64_t blocks) {
  const std::int64_t all = shape.multiprocessors;
  for (const int splits : {8, 6, 4, 3, 2}) {
    if (suits_clusters(shape, plan, blocks, splits)) return splits;
  }
  const bool whole_wave = 2 * blocks <= all && 32 * blocks >= 15 * all;
  const bool idle = 4 * blocks <= 3 * all && 2 * blocks > all;
  if (!shape.by_columns && (whole_wave || (plan.columns <= 2 && idle))) return 2;
  if (suits_threes(shape, plan, blocks)) return 3;
  const std::int64_t busy = plan.columns > 2 ? 2 * all : all;
  return (busy + blocks / 2) / blocks;
}

constexpr std::int64_t kByteRows = 512;                    ///< of the weights, at least
constexpr std::int64_t kTiledByteRows = 4096;              ///< tiles are faster with 16 rows of x
constexpr std::int64_t kByteSize = std::int64_t{1} << 20;  ///< numbers of weights, at least
constexpr std::int64_t kVeryMany = 256;                    ///< rows for each multiprocessor

bool has_very_many_rows(const SkinnyShape& shape) {
  return shape.n >= kVeryMany * shape.multiprocessors;
}

}  // namespace

void plan_skinny_wgmma(const SkinnyShape& shape, SkinnyPlan& plan) {
  const auto tiles = static_cast<unsigned>(ceil_div(shape.m, 8));
  choose_skinny(plan.columns, std::max(2u, std::bit_ceil(tiles)));
  choose_skinny(plan.warps, skinny_tma_warps(shape));
  plan.rows = 1;
  const std::int64_t blocks = ceil_div(shape.n, std::int64_t{16} * plan.warps) * shape.batches;
  const std::int64_t most = std::min<std::int64_t>(kMostSkinnyCluster, ceil_div(shape.k, 256));
  choose_skinny(plan.splits, std::clamp<std::int64_t>(skinny_tma_splits(shape, plan, blocks), 1,
                                                      std::max<std::int64_t>(1, most)));
  plan.splits = std::min(plan.splits, kMostSkinnyCluster);
  plan.clustered = plan.splits > 1;
  // PDL lets the next launch begin if all blocks run at once on almost all multiprocessors, or are
  // clusters that gain by PDL. More stages fetched ahead were slower on an H100 and an H200.
  const std::int64_t all = blocks * plan.splits;
  const bool one_wave = blocks <= clusters_at_once(plan.splits, shape.multiprocessors) &&
                        16 * all >= std::int64_t{15} * shape.multiprocessors;
  const bool threes = plan.splits == 3 && suits_threes(shape, plan, blocks);
  const bool clusters = suits_clusters(shape, plan, blocks, plan.splits);
  if ((one_wave || threes || clusters) && !shape.by_columns && plan.ahead < 0)
    plan.ahead = sends_skinny_accumulators(plan) ? 4 : 1;
  if (plan.stages >= 2) return;
  // A cluster waits until all of its blocks have a place, so there is room for one block more. But
  // two blocks of a launch with PDL must not go to one idle multiprocessor: both would
  // take twice the time. Short blocks fetch more ahead than that costs. Measured on an H200.
  const std::int64_t long_alone = plan.splits > 1 ? kLongAlone : kLongAloneWhole;
  const bool fits_alone = (one_wave || clusters) && ceil_div(shape.k, plan.splits) >= long_alone;
  const bool alone = (fits_alone || threes) && all < shape.multiprocessors && plan.ahead > 0;
  const std::int64_t beside = alone ? 1 : ceil_div(all, shape.multiprocessors) + 1;
  plan.stages = alone ? kStagesAlone : 8;
  while (plan.stages > 3 &&
         skinny_shared_bytes(shape, plan) > kSkinnyTileBytes / std::min<std::int64_t>(3, beside)) {
    --plan.stages;
  }
}

// ---- weights of one byte by warpgroups

bool fits_skinny_bytes(const SkinnyShape& shape) {
  return shape.tma_tiles && scalar_size(shape.weight_type) == 1 && shape.batches == 1;
}

/// Measured on an H100 and an H200.
bool takes_skinny_bytes(const SkinnyShape& shape) {
  const std::int64_t size = shape.n * shape.k, blocks = ceil_div(shape.n, 64);
  if (!fits_skinny_bytes(shape) || !shape.overlapping) return false;
  const bool fills = shape.n >= kByteRows && size >= kByteSize;
  if (shape.m > 16) return fills;
  // Fewer rows of x gain with few or very many rows of the weights, or with long ones where two
  // blocks that share k occupy most multiprocessors.
  if (fills && shape.n < kTiledByteRows) return true;
  if (has_very_many_rows(shape)) return true;
  return size >= 2 * kLargeSkinny && 2 * blocks <= shape.multiprocessors &&
         8 * blocks >= std::int64_t{3} * shape.multiprocessors;
}

/// Blocks have 64 rows of the weights, or 128 if there are more of them than multiprocessors. As
/// many blocks share k as run at once. A block has 8 warps; 16 if it has more rows, or all of k, or
/// few rows of x. Of very many rows of float8 it has 256 if x has many, which each of them
/// reads again; else few stages, so that two blocks are on a multiprocessor.
void plan_skinny_bytes(const SkinnyShape& shape, SkinnyPlan& plan) {
  const auto tiles = static_cast<unsigned>(ceil_div(shape.m, 8));
  choose_skinny(plan.columns, std::max(2u, std::bit_ceil(tiles)));
  const std::int64_t blocks = ceil_div(shape.n, 64);
  const bool high = blocks > shape.multiprocessors;
  if (plan.splits <= 0) {
    plan.splits = std::clamp<int>(static_cast<int>(shape.k / 512), 1, kMostSkinnyCluster);
    while (plan.splits > 1 && blocks > clusters_at_once(plan.splits, shape.multiprocessors))
      --plan.splits;
  }
  plan.splits = std::min(plan.splits, kMostSkinnyCluster);
  plan.clustered = plan.splits > 1;
  const bool int8 = shape.weight_type == ScalarType::int8;
  const bool wide = has_very_many_rows(shape) && shape.m > 32 && !int8;
  if (wide) choose_skinny(plan.unroll, 1);
  choose_skinny(plan.unroll, high || (plan.clustered && shape.m > 16) ? 2 : 4);
  const int least = 4 * plan.unroll;  // a warpgroup for each team
  if (plan.warps < least || plan.warps % least != 0)
    plan.warps = high && plan.unroll <= 2 ? 16 : least;
  plan.rows = plan.warps / plan.unroll;
  if (plan.ahead < 0) plan.ahead = plan.clustered ? 4 : 1;
  const int teams = plan.unroll;  // none shares stages with others
  const bool open = plan.stages <= 0;
  const int most = has_very_many_rows(shape) && shape.m <= 16 ? 4 : 8;
  plan.stages = std::max(teams, (open ? most : plan.stages) / teams * teams);
  while (open && plan.stages > teams && skinny_shared_bytes(shape, plan) > kSkinnyTileBytes)
    plan.stages -= teams;
}

std::int64_t clusters_at_once(std::int64_t blocks, std::int64_t multiprocessors) {
  if (blocks <= 2) return multiprocessors / blocks;
  return std::max<std::int64_t>(1, multiprocessors / 16) * (12 / blocks);
}

}  // namespace kernwright::kernels
