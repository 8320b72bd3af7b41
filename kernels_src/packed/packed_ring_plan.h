// The plan of products of up to 16 rows on Hopper whose blocks stay, while copies are on their way
// to them: of one row packed_whole.cu and packed_one.cu, of more packed_ring.cu.
#pragma once

#include "kernels_src/packed/packed_plan.h"

namespace kernwright::kernels {

constexpr std::int64_t kMostCluster = 8;    ///< blocks, on each device with clusters
constexpr std::int64_t kMostHeldUnits = 4;  ///< whose x a warp may keep in registers, of one row

/// A value for a parameter that is open.
inline void choose_packed(int& parameter, std::int64_t value) {
  if (parameter <= 0) parameter = static_cast<int>(value);
}
/// Units of two blocks that each of so many parts of k has.
inline std::int64_t packed_units(const PackedWeights& w, std::int64_t parts) {
  return ((w.k + 255) / 256 + parts - 1) / parts;
}
/// Whether each block has a tile, and each of 16 warps a part of k. One row of x gains with fewer
/// tiles, and with fewer parts: tiles leave more of the memory's rate unused.
bool fills_packed_warps(const PackedWeights& w, std::int64_t m, const PackedDevice& device);

/// Whether codes are whole numbers of a byte for products of one row (packed_whole.cu).
bool is_packed_whole(const PackedWeights& w);

/// Whether `plan` names stages, or nothing and the ring is measured to be faster.
bool takes_packed_ring(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan,
                       const PackedDevice& device);
/// `rows`: the tiles of a cluster, at most; `unroll`: the units whose x a warp keeps, two of eight
/// rows of x where k is long.
SkinnyPlan plan_packed_ring(const PackedWeights& w, std::int64_t m, SkinnyPlan plan,
                            const PackedDevice& device);
/// Whether a kernel has such a plan.
bool fits_packed_ring(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan,
                      const PackedDevice& device);
/// Blocks of the grid but for the splits.
std::int64_t packed_ring_blocks(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan,
                                const PackedDevice& device);
/// Dynamic shared memory of a block.
std::int64_t packed_ring_shared(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan);

}  // namespace kernwright::kernels
