// Quantised weights in the layout of their product's own kernels: the codes of each lane, and their
// way to pairs of the tensor cores' type.
//
// Rows are cut into tiles of 16, k into blocks of 128; a block of a tile lies in one piece. Of the
// rows `group` and `group + 8` of a tile, four lanes each have 32 codes of a block: 8 of each part
// of 32. So all lanes of a product of tiles are inside one group of a scale. Scales multiply
// accumulators in float32, and codes are exact: the results are those of the format's definition.
// NF4 and FP4 differ: their 16 numbers are rounded to the pairs' type.
//
// decode() gives codes plus kBase at no cost: it sets bits at the top of a mantissa with kBase's
// exponent. Kernels take the sum of x times kBase, zeros and minima off a group's sum. Products by
// warpgroups differ (packed_wgmma_rows.cuh): kBase and zeros come off the codes in registers. Those
// of Q4_K, Q5_K and Q6_K become weights there, rounded once (unit_weights.cuh).
//
// packed_codes.cuh, few_codes.cuh and table_codes.cuh have the codes, packed_scales.cuh and
// k_scales.cuh the scales.
//
// A format is Packed<Codes, Scales, Run>: `Run` neighbours along k are a lane's, 8 or (for groups
// of 16) twice 4.
#pragma once

#include <kernwright/few_codes.cuh>
#include <kernwright/k_scales.cuh>
#include <kernwright/packed_codes.cuh>
#include <kernwright/packed_scales.cuh>
#include <kernwright/table_codes.cuh>

namespace kernwright {

template <typename CodesType, typename ScalesType, int RunLength>
struct Packed {
  using Codes = CodesType;
  using Scales = ScalesType;
  static constexpr int kRun = RunLength, kGroup = Scales::kGroup;
  static constexpr bool kOffset = Scales::kOffset || Codes::kBase != 0;
  typename Codes::Raw codes;
  Scales scales;

  /// `Copied`: the arrays are copies in shared memory, except for the arrays of factors.
  template <bool Copied = false>
  __device__ __forceinline__ static Packed load(const PackedArrays& from, const PackedPlace& place,
                                                unsigned lane) {
    return {Codes::template load<Copied>(from, place, lane), Scales::load(from, place)};
  }
  /// Decodes a part of 32: pairs 0 and 1 are inside the first 16 where groups have 16.
  __device__ __forceinline__ void decode(int part, unsigned (&pairs)[4]) const {
    Codes::decode(codes, part, pairs);
  }
  __device__ __forceinline__ static float offset(const typename Scales::Ready& scales, int group,
                                                 float scale) {
    return fmaf(scale, scales.zero(group) + Codes::kBase, scales.minimum(group));
  }
};

}  // namespace kernwright
