// The RMS norm in front of a product of one row.
#pragma once

#include <kernwright/reduce.cuh>
#include <kernwright/skinny.cuh>

namespace kernwright {

/// With `Normed` a product takes the norm of its row x: elements of x count times the norm's
/// weight, and the factor 1 / sqrt(mean(x^2) + eps) multiplies the accumulators, so that no load
/// waits for it. The threads of a block have all of x, each element once.
template <typename T, bool Normed>
struct RowNorm {
  float squares = 0;

  /// Prefetches the norm's weight into L2, as fetch_ahead().
  __device__ __forceinline__ static void fetch(const SkinnyProblem& p) {
    if (Normed && blockIdx.x == 0 && threadIdx.x == 0) fetch_bulk(p.norm, p.k * sizeof(T));
  }

  /// Elements of x times those of the norm's weight.
  template <int N>
  __device__ __forceinline__ void weigh(const float (&weight)[N], float (&x)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      squares += x[i] * x[i];
      x[i] *= weight[i];
    }
  }
  /// Of the elements from `at` on.
  template <int N>
  __device__ __forceinline__ void weigh(const SkinnyProblem& p, UInt64 at, float (&x)[N]) {
    if constexpr (Normed) {
      const auto pack = *reinterpret_cast<const Pack<T, N>*>(static_cast<const T*>(p.norm) + at);
      float weight[N];
#pragma unroll
      for (int i = 0; i < N; ++i) weight[i] = to_compute(pack.value[i]);
      weigh(weight, x);
    }
  }

  /// By all threads, before the block meets.
  template <int Warps>
  __device__ __forceinline__ void keep(float (&warps)[Warps]) const {
    if constexpr (Normed) {
      const float sum = warp_reduce(squares, Sum());
      if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    }
  }
  /// Behind keep().
  template <int Warps>
  __device__ __forceinline__ static float factor(const SkinnyProblem& p,
                                                 const float (&warps)[Warps]) {
    if constexpr (!Normed) return 1;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < Warps; ++w) sum += warps[w];
    return rsqrtf(__fdividef(sum, static_cast<float>(p.k)) + p.eps);
  }
};

}  // namespace kernwright
