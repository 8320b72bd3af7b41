// Cross-entropy of a row of logits, for all kernels of it: sums, loss and gradient.
#pragma once

#include <kernwright/activations.cuh>
#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>

namespace kernwright {

__device__ __forceinline__ float math_log(float x) { return logf(x); }
__device__ __forceinline__ double math_log(double x) { return log(x); }

__device__ __forceinline__ float higher(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ double higher(double a, double b) { return fmax(a, b); }

template <typename F>
__device__ __forceinline__ F lowest() {
  return static_cast<F>(__int_as_float(0xff800000));
}

/// The logits of a row so far: their maximum, the sum of exp(x - max), and their sum less the row's
/// `from` each.
template <typename F>
struct Seen {
  F max, exps, all;
};

/// What groups of `Width` lanes have seen: the maximum first, so that a thread takes one power.
template <int Width, bool All, typename F>
__device__ __forceinline__ Seen<F> seen_by_lanes(const Seen<F>& partial) {
  Seen<F> whole = {};
  whole.max = warp_reduce<Width>(partial.max, [](F a, F b) { return higher(a, b); });
  const F factor = partial.max == whole.max ? F(1) : math_exp(partial.max - whole.max);
  whole.exps = warp_reduce<Width>(partial.exps * factor, Sum());
  if constexpr (All) whole.all = warp_reduce<Width>(partial.all, Sum());
  return whole;
}

/// What all threads of the block have seen. Every thread must call it; a kernel calls it in one
/// place.
template <int Threads, bool All, typename F>
__device__ __forceinline__ Seen<F> seen_by_block(const Seen<F>& lane_sums) {
  constexpr int kWarps = Threads / 32;
  static_assert((kWarps & (kWarps - 1)) == 0, "each group of lanes has all warps");
  const Seen<F> warp_seen = seen_by_lanes<32, All>(lane_sums);
  if constexpr (kWarps == 1) return warp_seen;
  __shared__ alignas(16) unsigned char memory[kWarps * sizeof(Seen<F>)];
  Seen<F>* const partial = reinterpret_cast<Seen<F>*>(memory);
  const int lane = threadIdx.x % 32;
  __syncthreads();  // an earlier call may still be read
  if (lane == 0) partial[threadIdx.x / 32] = warp_seen;
  __syncthreads();
  return seen_by_lanes<kWarps, All>(partial[lane % kWarps]);
}

/// `All`: the sum of x - from is wanted, times the `weights` of the elements' classes, or null
/// for 1. A NaN is in the sum of powers, not in the maximum.
template <bool All, int N, typename T, typename F>
__device__ __forceinline__ void see(Seen<F>& seen, const T (&raw)[N], const F* weights, F from) {
  F x[N];
  unpack(x, raw);
  F highest = seen.max;
#pragma unroll
  for (int j = 0; j < N; ++j) highest = higher(highest, x[j]);
  F sum = seen.max == highest ? seen.exps : seen.exps * exp_for<T>(seen.max - highest);
  const F shift = highest == lowest<F>() ? F(0) : highest;  // -inf - -inf is no number
#pragma unroll
  for (int j = 0; j < N; ++j) {
    sum += exp_for<T>(x[j] - shift);
    if (All) seen.all += weights == nullptr ? x[j] - from : (x[j] - from) * weights[j];
  }
  seen.max = highest;
  seen.exps = sum;
}

/// The data for a row's gradient: element c is exp(x - max) * slope - each * weights[c], and at
/// the target `hit` is subtracted as well. Without weights these are 1.
template <typename F>
struct RowGradient {
  F max, slope, each, hit;
  int target;  ///< -1 where it is no class
  const F* weights;

  /// The gradient of a logit in column `col`, if this is not the target.
  template <typename T>
  __device__ __forceinline__ F missed(F x, int col) const {
    const F less = weights == nullptr ? each : each * weights[col];
    return exp_for<T>(x - max) * slope - less;
  }
  /// The gradients of N logits from column `col` on, in their place.
  template <typename T, int N>
  __device__ __forceinline__ void put(T (&raw)[N], int col) const {
    F x[N];
    unpack(x, raw);
#pragma unroll
    for (int j = 0; j < N; ++j) x[j] = missed<T>(x[j], col + j);
    const unsigned place = static_cast<unsigned>(target) - static_cast<unsigned>(col);
    if (place < N) {
#pragma unroll
      for (int j = 0; j < N; ++j) x[j] -= place == j ? hit : F(0);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) raw[j] = from_compute<T>(x[j]);
  }
};

template <typename F>
struct LossTerms {
  F smoothing, z;
  const F* scale;       ///< of all rows, or null for 1
  const F* upstream;    ///< gradients of the rows' losses, or null for 1
  int upstream_stride;  ///< 0: one for all rows
  long long ignored;    ///< the target of rows that count for nothing
  const F* weights;     ///< of classes, or null for 1
  const F* weight_sum;  ///< their sum
};

/// A row's target: whether the target is a class, the weight, and the mean weight of all classes.
template <typename F>
struct RowTarget {
  long long number;
  bool outside;
  F weight, every_class;
  const F* weights;  ///< of all classes, where smoothing takes them; else null

  __device__ RowTarget(long long target, int cols, const LossTerms<F>& terms, bool weighted)
      : number(target),
        outside(target < 0 || target >= cols),
        weight(weighted && !outside ? terms.weights[target] : F(1)),
        every_class(1),
        weights(weighted && terms.smoothing != 0 ? terms.weights : nullptr) {
    if (weights != nullptr) every_class = *terms.weight_sum / cols;
  }
  __device__ const F* weights_at(long long col) const {
    return weights == nullptr ? nullptr : weights + col;
  }
};

template <typename F>
__device__ __forceinline__ F not_a_number() {
  return static_cast<F>(__int_as_float(0x7fffffff));
}

/// What smoothing subtracts from a row's logits before it adds them up: a large mean of the logits
/// must not take the digits of their differences. An infinite logit would turn all into NaN.
template <typename F>
__device__ __forceinline__ F loss_origin(F at_target) {
  return at_target - at_target == 0 ? at_target : F(0);
}

/// The loss of a row, unscaled. `at_target`: the target's logit. The logarithm of the sum is never
/// added to the maximum before the difference: that would round it to the maximum's last digit.
template <typename F>
__device__ __forceinline__ F row_loss(const Seen<F>& seen, F at_target, const RowTarget<F>& target,
                                      int cols, const LossTerms<F>& terms) {
  if (target.outside) return not_a_number<F>();
  const F log_exps = math_log(seen.exps), log_sum = seen.max + log_exps;
  const F miss = (seen.max - at_target) + log_exps;
  const F spread =
      ((seen.max - loss_origin(at_target)) + log_exps) * target.every_class - seen.all / cols;
  F loss = target.weight * ((1 - terms.smoothing) * miss + terms.z * log_sum * log_sum);
  if (terms.smoothing != 0) loss += terms.smoothing * spread;
  return loss;
}

template <typename F>
__device__ __forceinline__ RowGradient<F> row_gradient(const Seen<F>& seen, long long row,
                                                       const RowTarget<F>& target, int cols,
                                                       const LossTerms<F>& terms) {
  F scale = terms.scale == nullptr ? F(1) : *terms.scale;
  if (terms.upstream != nullptr) scale *= terms.upstream[row * terms.upstream_stride];
  if (target.outside) scale = not_a_number<F>();
  const F log_sum = seen.max + math_log(seen.exps);
  const F slope = target.weight * (1 + 2 * terms.z * log_sum) +
                  terms.smoothing * (target.every_class - target.weight);
  return {seen.max,
          scale * slope / seen.exps,
          scale * terms.smoothing / cols,
          scale * target.weight * (1 - terms.smoothing),
          target.outside ? -1 : static_cast<int>(target.number),
          target.weights};
}

}  // namespace kernwright
