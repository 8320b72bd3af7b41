// Tables of cosines and sines, and how pairs of elements turn by them.
#pragma once

#include <kernwright/elements.cuh>

namespace kernwright {

/// (rows, half) each, row-major, at multiples of 16 bytes.
struct RopeTables {
  const float* cos;
  const float* sin;
  long long rows;
  int half;  ///< pairs that turn
};

template <int N>
__device__ __forceinline__ void load_angles(const float* from, float factor, float (&angles)[N]) {
  constexpr int kWidth = N < 4 ? N : 4;
#pragma unroll
  for (int i = 0; i < N; i += kWidth) {
    const Pack<float, kWidth> pack = *reinterpret_cast<const Pack<float, kWidth>*>(from + i);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) angles[i + j] = pack.value[j] * factor;
  }
}

/// Rotates a pair: the first member, then the second. The explicit rounding makes all callers
/// agree.
template <typename C>
__device__ __forceinline__ C turned_first(C a, C b, C cosine, C sine) {
  return fma(a, cosine, -(b * sine));
}
template <typename C>
__device__ __forceinline__ C turned_second(C a, C b, C cosine, C sine) {
  return fma(b, cosine, a * sine);
}

}  // namespace kernwright
