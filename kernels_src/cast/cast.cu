// Converts each element of a strided view to another type, by the rules that cast.h states.
#include <kernwright/elements.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

template <typename To, typename From, int N>
__device__ __forceinline__ void convert(char* to, const Pack<From, N>& from) {
  Pack<To, N> result;
#pragma unroll
  for (int j = 0; j < N; ++j) result.value[j] = Element<To, From>::apply(from.value[j]);
  *reinterpret_cast<Pack<To, N>*>(to) = result;
}

/// Extent 0 and strides 0 of `view` count packs of N elements. A thread loads K packs, one block
/// apart, before it stores. The `rest` elements behind the last pack, fewer than N, follow it in
/// memory. `Index` holds packs plus one grid of threads and their packs. The views do not overlap.
template <typename To, typename From, int N, int K, typename Index>
__global__ void cast(char* __restrict__ to, const char* __restrict__ from, const Walk<2> view,
                     Index packs, int rest) {
  const Index tile = static_cast<Index>(blockDim.x) * K;
  for (Index first = blockIdx.x * tile + threadIdx.x; first < packs; first += gridDim.x * tile) {
    Pack<From, N> value[K];
    long long target[K];
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const Index i = first + static_cast<Index>(k) * blockDim.x;
      if (i >= packs) break;
      const WalkOffsets<2> at = walk_offsets(view, i);
      target[k] = at.offset[0];
      value[k] = *reinterpret_cast<const Pack<From, N>*>(from + at.offset[1]);
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (first + static_cast<Index>(k) * blockDim.x >= packs) break;
      convert<To, From, N>(to + target[k], value[k]);
    }
  }
  if (N > 1 && blockIdx.x == 0 && static_cast<int>(threadIdx.x) < rest) {
    const long long i = static_cast<long long>(packs) * N + threadIdx.x;
    const auto value = *reinterpret_cast<const Pack<From, 1>*>(from + i * sizeof(From));
    convert<To, From, 1>(to + i * sizeof(To), value);
  }
}
