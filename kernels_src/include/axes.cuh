// Where the results and the elements of a reduction or a scan lie: axes that stay, axes that go.
#pragma once

namespace kernwright {

constexpr int kMaxAxes = 4;

/// The axes that stay, the innermost first; strides in bytes. A kernel's parameter.
struct KeptAxes {
  long long extent[kMaxAxes];
  long long to[kMaxAxes];
  long long from[kMaxAxes];
  int ndim;
};

/// The axes that go, the innermost first.
struct ReducedAxes {
  long long extent[kMaxAxes];
  long long from[kMaxAxes];
  int ndim;
};

struct KeptOffsets {
  long long to, from;
};

/// Bytes from the start of each side to result `i`. The last axis takes what is left.
template <typename Index>
__device__ __forceinline__ KeptOffsets kept_offsets(const KeptAxes& axes, Index i) {
  KeptOffsets offsets = {0, 0};
#pragma unroll
  for (int d = 0; d < kMaxAxes; ++d) {
    if (d + 1 >= axes.ndim) {
      offsets.to += static_cast<long long>(i) * axes.to[d];
      offsets.from += static_cast<long long>(i) * axes.from[d];
      break;
    }
    const Index extent = static_cast<Index>(axes.extent[d]);
    const Index rest = i / extent;
    const long long within = static_cast<long long>(i - rest * extent);
    offsets.to += within * axes.to[d];
    offsets.from += within * axes.from[d];
    i = rest;
  }
  return offsets;
}

/// Bytes from the first of the elements that become one to element `i` of them.
template <typename Index>
__device__ __forceinline__ long long reduced_offset(const ReducedAxes& axes, Index i) {
  long long offset = 0;
#pragma unroll
  for (int d = 0; d < kMaxAxes; ++d) {
    if (d + 1 >= axes.ndim) {
      offset += static_cast<long long>(i) * axes.from[d];
      break;
    }
    const Index extent = static_cast<Index>(axes.extent[d]);
    const Index rest = i / extent;
    offset += static_cast<long long>(i - rest * extent) * axes.from[d];
    i = rest;
  }
  return offset;
}

}  // namespace kernwright
