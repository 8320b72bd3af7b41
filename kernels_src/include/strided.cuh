// Where element i of a strided copy lies in the target and in the source.
#pragma once

constexpr int kMaxDims = 8;

/// Extents and strides in bytes of both sides, the innermost dimension first. A kernel's parameter.
struct StridedPair {
  long long extent[kMaxDims];
  long long to[kMaxDims];
  long long from[kMaxDims];
  int ndim;
};

struct StridedOffsets {
  long long to, from;
};

/// Bytes from the start of each side. The loop is unrolled so that every index into the parameter
/// is a constant, and leaves at the last dimension, where the rest is the index.
template <typename Index>
__device__ __forceinline__ StridedOffsets strided_offsets(const StridedPair& view, Index i) {
  StridedOffsets offsets = {0, 0};
#pragma unroll
  for (int d = 0; d < kMaxDims; ++d) {
    if (d + 1 >= view.ndim) {
      offsets.to += static_cast<long long>(i) * view.to[d];
      offsets.from += static_cast<long long>(i) * view.from[d];
      break;
    }
    const Index extent = static_cast<Index>(view.extent[d]);
    const Index rest = i / extent;
    const long long within = static_cast<long long>(i - rest * extent);
    offsets.to += within * view.to[d];
    offsets.from += within * view.from[d];
    i = rest;
  }
  return offsets;
}
