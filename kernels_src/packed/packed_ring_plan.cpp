// The plan of packed_whole.cu, packed_one.cu and packed_ring.cu.
#include "kernels_src/packed/packed_ring_plan.h"

#include "base/math.h"
#include "kernels_src/packed/packed_wgmma.h"

#include <algorithm>
#include <bit>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kRingRows = 16;
constexpr std::int64_t kLongRing = 8192;  ///< k

/// Numbers that have one scale.
std::int64_t packed_group(const PackedWeights& w) {
  return w.traits().has_group_sizes() ? w.group : w.traits().group;
}

/// Bytes of the sums of x of a warp, as HeldColumns has them, for each row and unit.
std::int64_t packed_offset_bytes(const PackedWeights& w) {
  return w.traits().has_offset ? 4 * 256 / packed_group(w) : 0;
}

/// As XDigits in packed_digits.cuh has them, with the zeros in front.
std::int64_t packed_digit_bytes(const PackedWeights& w) {
  return 640 + packed_units(w, 1) * (1280 + 128 / packed_group(w) * 32);
}

/// Whether a block of 16 warps has room for the digits of all of k beside one stage of each warp.
bool fits_packed_digits(const PackedWeights& w, const PackedDevice& device) {
  const SkinnyPlan least = {.warps = 16, .stages = 1};
  return !is_packed_whole(w) || fits_packed_ring(w, 1, least, device);
}

SkinnyPlan plan_packed_one(const PackedWeights& w, SkinnyPlan plan, const PackedDevice& device) {
  plan.rows = plan.splits = 1;
  const bool whole = is_packed_whole(w);
  choose_packed(plan.warps, fits_packed_digits(w, device) ? 16 : 8);
  const std::int64_t units = packed_units(w, plan.warps);
  // Bytes on their way keep later ones waiting, and so do those of a long k. Measured on an H200.
  const std::int64_t most = w.traits().has_short_groups() ? 2 : 4;
  choose_packed(plan.stages, whole && units > 1 && units <= most ? 2 : 1);
  plan.columns = units <= kMostHeldUnits && !whole ? static_cast<int>(units) : 0;
  plan.unroll = 0;
  return plan;
}

/// Clusters of splits that run at once, at least one.
std::int64_t packed_ring_clusters(const SkinnyPlan& plan, const PackedDevice& device) {
  const std::int64_t resident = std::max(1, 16 / plan.warps);  // blocks of a multiprocessor
  const std::int64_t across = ceil_div(plan.splits, resident);
  const std::int64_t side_by_side = std::max<std::int64_t>(1, resident / plan.splits);
  return std::max<std::int64_t>(1, clusters_at_once(across, device.multiprocessors)) * side_by_side;
}

/// Measured on an H200.
bool gains_by_packed_ring(const PackedWeights& w, std::int64_t m, const PackedDevice& device) {
  const PackedTraits& traits = w.traits();
  if (m == 1) return traits.has_table || is_packed_whole(w);
  const bool high = w.n >= 32 * device.multiprocessors;
  if (m > 8) return high || !traits.has_byte_codes();
  return traits.has_table || (high && w.k <= traits.ring_depth);
}

}  // namespace

bool is_packed_whole(const PackedWeights& w) {
  return !w.traits().has_table && !w.traits().has_byte_codes();
}

bool fills_packed_warps(const PackedWeights& w, std::int64_t m, const PackedDevice& device) {
  // One row, H200: 18944 x 3584 numbers of q4_k take 11.5 us, 20.5 by tiles; 512 x 3584 2.5
  // and 4.5.
  constexpr std::int64_t kOneRowTiles = 32;
  const std::int64_t tiles = m == 1 ? kOneRowTiles : device.multiprocessors;
  return ceil_div(w.n, 16) >= tiles && packed_units(w, 1) >= (m == 1 ? 14 : 16);
}

std::int64_t packed_ring_shared(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan) {
  const std::int64_t table = w.traits().has_table ? kPairTableBytes : 0;
  const std::int64_t stages = plan.stages * packed_stage_bytes(w);
  if (m == 1) {
    constexpr std::int64_t accumulators = 8 * 16 * 4;  // of kKeptTiles
    const std::int64_t x_bytes = is_packed_whole(w) ? packed_digit_bytes(w) : 0;
    return table + plan.warps * (stages + accumulators) + x_bytes;
  }
  // TileStages and TileAccumulators in packed_tiles.cuh take these bytes.
  const std::int64_t columns = 8 * plan.columns, accumulators = 2 * columns * 20 * 4;
  const std::int64_t kept = plan.splits > 1 ? 2 * 4 * columns * 16 * 4 : 0;
  const std::int64_t unit_bytes = stages + columns * packed_offset_bytes(w);
  return table + plan.warps * (plan.unroll * unit_bytes + accumulators) + kept;
}

SkinnyPlan plan_packed_ring(const PackedWeights& w, std::int64_t m, SkinnyPlan plan,
                            const PackedDevice& device) {
  plan.kernel = SkinnyKernel::ring;
  if (m == 1) return plan_packed_one(w, plan, device);
  plan.columns = m <= 8 ? 1 : 2;
  choose_packed(plan.warps, 16);
  choose_packed(plan.stages, 2);
  const std::int64_t held = plan.columns == 1 && w.k > kLongRing ? 2 : 1;
  choose_packed(plan.splits, packed_units(w, plan.warps * held));
  plan.unroll = static_cast<int>(packed_units(w, std::int64_t{plan.warps} * plan.splits));
  const std::int64_t tiles = ceil_div(w.n, 16), clusters = packed_ring_clusters(plan, device);
  choose_packed(plan.rows, ceil_div(tiles, clusters));
  return plan;
}

bool fits_packed_ring(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan,
                      const PackedDevice& device) {
  constexpr std::int64_t kBarriers = 2048;  // no more than these bytes
  return plan.warps <= 16 && plan.stages <= 8 && plan.splits <= kMostCluster &&
         (m > 1 || !w.traits().has_byte_codes()) && (m == 1 || plan.unroll <= 2 / plan.columns) &&
         std::has_single_bit(static_cast<unsigned>(plan.warps)) &&
         packed_ring_shared(w, m, plan) + kBarriers <= device.shared_bytes;
}

bool takes_packed_ring(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan,
                       const PackedDevice& device) {
  if (m > kRingRows || !device.overlapping) return false;
  if (plan != SkinnyPlan{}) return plan.stages > 0 && plan.kernel == SkinnyKernel::chosen;
  return fills_packed_warps(w, m, device) && gains_by_packed_ring(w, m, device) &&
         fits_packed_ring(w, m, plan_packed_ring(w, m, plan, device), device);
}

std::int64_t packed_ring_blocks(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan,
                                const PackedDevice& device) {
  const std::int64_t tiles = ceil_div(w.n, 16);
  if (m > 1) return ceil_div(tiles, plan.rows);
  const std::int64_t resident = is_packed_whole(w) ? 1 : 16 / plan.warps;
  return std::min(tiles, resident * device.multiprocessors);
}

}  // namespace kernwright::kernels
