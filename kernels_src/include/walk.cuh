// Offsets of element i in several views with a common walk.
#pragma once

/// Extents and strides, the innermost dimension first; a kernel parameter. `magic` and `shift` are
/// the FastDivisor (walk_plan.h) of the extent: they divide numbers below 2^31 without a division.
/// `Offset` holds every distance. The fields for walks of one dimension are adjacent at the begin.
template <int Views, int Dims = 8, typename Offset = long long>
struct Walk {
  int ndim;
  Offset stride[Dims][Views];
  long long extent[Dims];
  unsigned magic[Dims];
  unsigned shift[Dims];
};

template <int Views, typename Offset = long long>
struct WalkOffsets {
  Offset offset[Views];
};

/// The loop is unrolled, so every index into the parameter is a constant. It leaves at the last
/// dimension, where the rest is the index. Unused views cost nothing.
template <typename Index, int Views, int Dims, typename Offset>
__device__ __forceinline__ WalkOffsets<Views, Offset> walk_offsets(
    const Walk<Views, Dims, Offset>& view, Index i) {
  WalkOffsets<Views, Offset> at = {};
#pragma unroll
  for (int d = 0; d < Dims; ++d) {
    const bool last = d + 1 == Dims || d + 1 >= view.ndim;
    Index rest = 0, within = i;
    if (!last) {
      const Index extent = static_cast<Index>(view.extent[d]);
      if constexpr (sizeof(Index) == 4) {
        rest = __umulhi(i + i, view.magic[d]) >> view.shift[d];
      } else {
        rest = i / extent;
      }
      within = i - rest * extent;
    }
#pragma unroll
    for (int v = 0; v < Views; ++v) at.offset[v] += static_cast<Offset>(within) * view.stride[d][v];
    if (last) break;
    i = rest;
  }
  return at;
}
