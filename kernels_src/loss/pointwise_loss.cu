// Losses of pairs of elements: values, their sum, and gradients, in one pass.
#include <kernwright/activations.cuh>
#include <kernwright/edge_packs.cuh>
#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>
#include <kernwright/total.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

struct SquaredError {
  template <typename F>
  __device__ static F value(F x, F t, F) {
    return (x - t) * (x - t);
  }
  template <typename F>
  __device__ static F slope(F x, F t, F) {
    return 2 * (x - t);
  }
};

struct AbsoluteError {
  template <typename F>
  __device__ static F value(F x, F t, F) {
    return math_abs(x - t);
  }
  template <typename F>
  __device__ static F slope(F x, F t, F) {
    const F d = x - t;
    return d > 0 ? F(1) : d < 0 ? F(-1) : d;  // 0, or a NaN
  }
};

/// Quadratic up to a distance of `delta`, linear beyond.
struct Huber {
  template <typename F>
  __device__ static F value(F x, F t, F delta) {
    const F d = math_abs(x - t);
    return d <= delta ? F(0.5) * d * d : delta * (d - F(0.5) * delta);
  }
  template <typename F>
  __device__ static F slope(F x, F t, F delta) {
    const F d = x - t;
    return d > delta ? delta : d < -delta ? -delta : d;
  }
};

/// Binary cross-entropy of a logit; `weight` multiplies the term of the positive class. No term is
/// a difference of two terms: small losses and slopes of sure logits keep their digits.
struct BinaryCrossEntropy {
  template <typename F>
  __device__ static F value(F x, F t, F weight) {
    const F below = 1 - t, above = weight * t, bend = math_log1p(math_exp(-math_abs(x)));
    return (below + above) * bend + (x < 0 ? -above : below) * x;
  }
  template <typename F>
  __device__ static F slope(F x, F t, F weight) {
    const F tail = math_exp(-math_abs(x)), near = reciprocal(1 + tail), far = tail * near;
    const F below = 1 - t, above = weight * t;
    return x < 0 ? below * far - above * near : below * near - above * far;
  }
};

/// Each: values[i]; Total: a sum for each block into `partial`; Gradient: dx = slope * scale, times
/// *upstream and upstream_each[i] unless null. The grid strides over the packs.
template <typename Op, typename T, int N, bool Each, bool Total, bool Gradient, typename Index>
__global__ void __launch_bounds__(kThreads)
    pointwise_loss(const T* __restrict__ x, const T* __restrict__ t, T* __restrict__ values,
                   Compute<T>* __restrict__ partial, T* __restrict__ dx,
                   const Compute<T>* __restrict__ upstream, const T* __restrict__ upstream_each,
                   Compute<T> scale, Compute<T> knob, Index count) {
  using F = Compute<T>;
  if (Gradient && upstream != nullptr) scale *= *upstream;
  F sum = 0;
  const Index step = static_cast<Index>(gridDim.x) * kThreads * N;
#pragma unroll 2
  for (Index i = (static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x) * N; i < count;
       i += step) {
    Pack<T, N> a, b, each, value, gradient;
    load_pack<N>(x, i, count, a);
    load_pack<N>(t, i, count, b);
    if (Gradient && upstream_each != nullptr) load_pack<N>(upstream_each, i, count, each);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const F xj = to_compute(a.value[j]), tj = to_compute(b.value[j]);
      if constexpr (Each || Total) {
        const F loss = Op::value(xj, tj, knob);
        if (Total && i + j < count) sum += loss;
        value.value[j] = from_compute<T>(loss);
      }
      if constexpr (Gradient) {
        F slope = Op::slope(xj, tj, knob) * scale;
        if (upstream_each != nullptr) slope *= to_compute(each.value[j]);
        gradient.value[j] = from_compute<T>(slope);
      }
    }
    if constexpr (Each) store_pack<N>(values, i, count, value);
    if constexpr (Gradient) store_pack<N>(dx, i, count, gradient);
  }
  if constexpr (Total) {
    sum = block_reduce<kThreads>(sum, Sum(), F(0));
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
  }
}
