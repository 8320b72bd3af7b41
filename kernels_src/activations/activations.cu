// Activations of whole arrays, and gradients through them.
#include <kernwright/activations.cuh>
#include <kernwright/elements.cuh>
#include <kernwright/edge_packs.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// Each thread has K packs of N elements, one block apart; all of them are loaded before the first
/// is used.
template <typename Op, typename T, int N, int K, typename Index>
__global__ void __launch_bounds__(kThreads)
    activate(const T* __restrict__ x, T* __restrict__ y, Index count, Knobs<Compute<T>> knobs) {
  const Index first = (static_cast<Index>(blockIdx.x) * (K * kThreads) + threadIdx.x) * N;
  Pack<T, N> pack[K];
#pragma unroll
  for (int k = 0; k < K; ++k) load_pack<N>(x, first + k * kThreads * N, count, pack[k]);
#pragma unroll
  for (int k = 0; k < K; ++k) {
#pragma unroll
    for (int j = 0; j < N; ++j)
      pack[k].value[j] = from_compute<T>(Op::value(to_compute(pack[k].value[j]), knobs));
    store_pack<N>(y, first + k * kThreads * N, count, pack[k]);
  }
}

/// dx = dy times the derivative at x.
template <typename Op, typename T, int N, int K, typename Index>
__global__ void __launch_bounds__(kThreads)
    activate_backward(const T* __restrict__ dy, const T* __restrict__ x, T* __restrict__ dx,
                      Index count, Knobs<Compute<T>> knobs) {
  const Index first = (static_cast<Index>(blockIdx.x) * (K * kThreads) + threadIdx.x) * N;
  Pack<T, N> pack[K], gradient[K];
#pragma unroll
  for (int k = 0; k < K; ++k) {
    load_pack<N>(x, first + k * kThreads * N, count, pack[k]);
    load_pack<N>(dy, first + k * kThreads * N, count, gradient[k]);
  }
#pragma unroll
  for (int k = 0; k < K; ++k) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const Compute<T> slope = Op::slope(to_compute(pack[k].value[j]), knobs);
      pack[k].value[j] = from_compute<T>(to_compute(gradient[k].value[j]) * slope);
    }
    store_pack<N>(dx, first + k * kThreads * N, count, pack[k]);
  }
}
