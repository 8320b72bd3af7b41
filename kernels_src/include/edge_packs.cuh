// Packs of neighbours, at the end of an array or a row too: what lies outside is neither read nor
// written.
#pragma once

#include <kernwright/elements.cuh>

namespace kernwright {

/// Loads a pack without edges. Several such loads overlap; loads with edges do not.
template <int N, typename T>
__device__ __forceinline__ void load_whole(const T* __restrict__ from, Pack<T, N>& pack) {
  pack = *reinterpret_cast<const Pack<T, N>*>(from);
}
template <int N, typename T>
__device__ __forceinline__ void store_whole(T* __restrict__ to, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

/// The N elements from `i` on, in the type that T computes in; zeros from `count` on. `from + i` is
/// a multiple of N elements.
template <int N, typename T, typename Index>
__device__ __forceinline__ void load_pack(const T* __restrict__ from, Index i, Index count,
                                          Pack<T, N>& pack) {
  if (i + N <= count) {
    pack = *reinterpret_cast<const Pack<T, N>*>(from + i);
    return;
  }
#pragma unroll
  for (int j = 0; j < N; ++j)
    pack.value[j] = i + j < count ? from[i + j] : from_compute<T>(Compute<T>(0));
}

template <int N, typename T, typename Index>
__device__ __forceinline__ void store_pack(T* __restrict__ to, Index i, Index count,
                                           const Pack<T, N>& pack) {
  if (i + N <= count) {
    *reinterpret_cast<Pack<T, N>*>(to + i) = pack;
    return;
  }
#pragma unroll
  for (int j = 0; j < N; ++j)
    if (i + j < count) to[i + j] = pack.value[j];
}

}  // namespace kernwright
