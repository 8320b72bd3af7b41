// Dropout: whether element i stays is a function of i, the seed and the offset alone. The offset
// may lie in memory, so that a graph moves it on.
#include <kernwright/edge_packs.cuh>
#include <kernwright/elements.cuh>
#include <kernwright/philox.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// The random bits of N elements from `i` on (a multiple of N): four elements share a counter.
template <int N>
__device__ __forceinline__ void random_bits(unsigned long long i, unsigned long long seed,
                                            unsigned long long offset, unsigned (&bits)[N]) {
  constexpr int kDraws = N < 4 ? 1 : N / 4;
#pragma unroll
  for (int d = 0; d < kDraws; ++d) {
    const uint4 drawn = Philox(seed, offset, i / 4 + d).next4();
    const unsigned word[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
    if constexpr (N >= 4) {
#pragma unroll
      for (int j = 0; j < 4; ++j) bits[d * 4 + j] = word[j];
    } else {
      const int at = static_cast<int>(i % 4);
#pragma unroll
      for (int j = 0; j < N; ++j)
        bits[j] = at + j == 0 ? word[0] : at + j == 1 ? word[1] : at + j == 2 ? word[2] : word[3];
    }
  }
}

/// Elements whose bits are below `threshold` become 0, all further elements are scaled.
template <typename T, int N, int K, typename Index>
__global__ void __launch_bounds__(kThreads)
    dropout(const T* __restrict__ x, T* __restrict__ y, Index count, unsigned threshold,
            Compute<T> scale, unsigned long long seed, unsigned long long offset,
            const unsigned long long* __restrict__ counter) {
  if (counter != nullptr) offset += *counter;
  const Index first = (static_cast<Index>(blockIdx.x) * (K * kThreads) + threadIdx.x) * N;
  Pack<T, N> pack[K];
#pragma unroll
  for (int k = 0; k < K; ++k) load_pack<N>(x, first + k * kThreads * N, count, pack[k]);
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const Index i = first + k * kThreads * N;
    unsigned bits[N];
    random_bits<N>(i, seed, offset, bits);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const Compute<T> kept = to_compute(pack[k].value[j]) * scale;
      pack[k].value[j] = from_compute<T>(bits[j] < threshold ? Compute<T>(0) : kept);
    }
    store_pack<N>(y, i, count, pack[k]);
  }
}
