// Shared by the kernels of scans: the plan of a launch, sums of warps, words of tiles.
#pragma once

#include <kernwright/posted.cuh>
#include <kernwright/running.cuh>
#include <kernwright/walk.cuh>

namespace kernwright {

/// Along the axis: strides in bytes. The results begin one later where there is an initial one.
template <typename Index>
struct ScanParameters {
  Walk<2, 4> kept;
  long long from, to;  ///< the axis' strides
  Index rows;          ///< all scans
  Index length;
  Index segment, segments;  ///< columns: elements of a segment, segments of a scan
  int initial;              ///< the result of no elements comes first
};

/// The combination of all values of the warp's lanes, in their order; each lane gets it.
template <typename Op>
__device__ __forceinline__ typename Op::Carry warp_carry(typename Op::Carry value, int lane) {
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2) {
    const typename Op::Carry other = shuffle_xor(value, mask);
    value = lane & mask ? Op::combine(other, value) : Op::combine(value, other);
  }
  return value;
}

/// Words that are zero before and after the launch: `own` has kPostedWords for each tile.
struct Posts {
  unsigned* ticket;
  unsigned* done;
  UInt64* tile_values;
};

}  // namespace kernwright
