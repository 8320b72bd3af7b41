// Where element i lies in each of several views that are walked together.
#pragma once

constexpr int kWalkDims = 8;

/// Extents and strides, the innermost dimension first. A kernel's parameter. `magic` and `shift`
/// divide by the extent without a division: for numbers below 2^31.
template <int Views>
struct Walk {
  long long extent[kWalkDims];
  long long stride[Views][kWalkDims];
  unsigned magic[kWalkDims];
  unsigned shift[kWalkDims];
  int ndim;
};

template <int Views>
struct WalkOffsets {
  long long of[Views];
};

template <int Views>
__device__ __forceinline__ unsigned walk_divide(const Walk<Views>& view, int d, unsigned i) {
  return __umulhi(i, view.magic[d]) >> view.shift[d];
}
template <int Views>
__device__ __forceinline__ unsigned long long walk_divide(const Walk<Views>& view, int d,
                                                          unsigned long long i) {
  return i / static_cast<unsigned long long>(view.extent[d]);
}

/// The loop is unrolled so that every index into the parameter is a constant, and leaves at the
/// last dimension, where the rest is the index.
template <typename Index, int Views>
__device__ __forceinline__ WalkOffsets<Views> walk_offsets(const Walk<Views>& view, Index i) {
  WalkOffsets<Views> at = {};
#pragma unroll
  for (int d = 0; d < kWalkDims; ++d) {
    const bool last = d + 1 >= view.ndim;
    const Index rest = last ? 0 : walk_divide(view, d, i);
    const long long within =
        static_cast<long long>(last ? i : i - rest * static_cast<Index>(view.extent[d]));
#pragma unroll
    for (int v = 0; v < Views; ++v) at.of[v] += within * view.stride[v][d];
    if (last) break;
    i = rest;
  }
  return at;
}
