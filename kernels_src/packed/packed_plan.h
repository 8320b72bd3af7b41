// How products with packed weights are cut among blocks.
#pragma once

#include "kernels_src/packed/packed.h"

namespace kernwright::kernels {

/// What plans depend on of a device.
struct PackedDevice {
  std::int64_t multiprocessors = 1;
  std::int64_t shared_bytes = 0;  ///< that a block may have
  /// Kernels may begin before the one in front has ended, and bulk copies reach shared memory.
  bool overlapping = false;
  bool wgmma = false;
};
PackedDevice packed_device(const Device& device);

constexpr std::int64_t kPackedRows = 512;  ///< of x, at most

/// `wanted` with all open points chosen, for up to kPackedRows rows `m`. Throws InvalidArgument
/// where no kernel has such a plan. The kernel may be named if it is SkinnyKernel::wgmma, whose
/// `columns` are tiles of eight, whose splits are a cluster and whose `rows` are kPackedArranged or
/// kPackedSpread. Of the ring of one row `rows` is 1 and `columns` how many units of k a warp keeps
/// the x of. Of that of more rows `rows` are the tiles that a cluster
/// has, `columns` tiles of eight rows of x, `unroll` the units, and splits are a cluster. Of more
/// than kSkinnyRows rows of x `rows` and `columns` are tiles of a warp, `unroll` is the count of
/// stages.
SkinnyPlan plan_packed(const PackedWeights& weights, std::int64_t m, SkinnyPlan wanted,
                       const PackedDevice& device);

/// Whether blocks fetch their weights while the kernel in front still runs: where few loads come
/// later, which would wait behind the fetches.
bool packed_fetches(const PackedWeights& weights, const SkinnyPlan& plan);

/// Blocks of the grid but for the splits.
std::int64_t packed_blocks(const PackedWeights& weights, std::int64_t m, const SkinnyPlan& plan,
                           const PackedDevice& device);
/// Dynamic shared memory of a block.
std::int64_t packed_shared_bytes(const PackedWeights& weights, std::int64_t m,
                                 const SkinnyPlan& plan);

}  // namespace kernwright::kernels
