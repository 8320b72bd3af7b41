// Cross-entropy of rows of logits, and its gradient in the same pass.
//
// A block has a row. With a gradient it keeps the row on the chip, first in registers, then in
// shared memory; what fits neither is read again. Maximum and sum are found in one pass ("online":
// M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018).
#include <kernwright/activations.cuh>
#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>
#include <kernwright/total.cuh>

using namespace kernwright;

__device__ __forceinline__ float log_of(float x) { return logf(x); }
__device__ __forceinline__ double log_of(double x) { return log(x); }

/// The logits of a row so far: their maximum, the sum of exp(x - max), their sum.
template <typename F>
struct Seen {
  F max, exps, all;
};

struct Join {
  template <typename F>
  __device__ __forceinline__ Seen<F> operator()(const Seen<F>& a, const Seen<F>& b) const {
    const bool first = a.max >= b.max;
    const Seen<F> high = first ? a : b, low = first ? b : a;
    const F factor = low.max == high.max ? F(1) : exp_of(low.max - high.max);
    return {high.max, high.exps + low.exps * factor, high.all + low.all};
  }
};

template <typename F>
__device__ __forceinline__ F lowest() {
  return static_cast<F>(__int_as_float(0xff800000));
}

__device__ __forceinline__ float higher(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ double higher(double a, double b) { return fmax(a, b); }

/// `weights` are those of the elements' classes, or null for 1. A NaN is in the sum, not the
/// maximum.
template <int N, typename T, typename F>
__device__ __forceinline__ void see(Seen<F>& seen, const T (&x)[N], const F* weights) {
  F highest = seen.max;
#pragma unroll
  for (int j = 0; j < N; ++j) highest = higher(highest, static_cast<F>(to_compute(x[j])));
  F sum = seen.max == highest ? seen.exps : seen.exps * exp_of(seen.max - highest);
  const F shift = highest == lowest<F>() ? F(0) : highest;  // -inf - -inf is no number
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const F value = to_compute(x[j]);
    sum += exp_for<T>(value - shift);
    seen.all += weights == nullptr ? value : value * weights[j];
  }
  seen.max = highest;
  seen.exps = sum;
}

/// What a row's gradient needs: element c is exp(x - log_sum) * slope - each * weights[c], at the
/// target less `hit` besides. Without weights these are 1.
template <typename F>
struct RowGradient {
  F log_sum, slope, each, hit;
  long long target;
  const F* weights;

  /// Of N logits from column `col` on, in their place.
  template <typename T, int N>
  __device__ __forceinline__ void put(T (&x)[N], long long col) const {
    const bool has_target = col <= target && target < col + N;
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const F less = weights == nullptr ? each : each * weights[col + j];
      const F value = exp_for<T>(to_compute(x[j]) - log_sum) * slope - less;
      x[j] = from_compute<T>(has_target && col + j == target ? value - hit : value);
    }
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

/// A row of T that may begin anywhere: `lead` elements up to the first pack, `packs` of N, a rest.
template <typename T, int N>
struct RowParts {
  int lead, packs, edges;

  __device__ RowParts(const T* row, int cols) {
    constexpr int kBytes = N * sizeof(T);
    const int past = static_cast<int>(reinterpret_cast<unsigned long long>(row) % kBytes);
    lead = past == 0 ? 0 : (kBytes - past) / static_cast<int>(sizeof(T));
    if (lead > cols) lead = cols;
    packs = (cols - lead) / N;
    edges = cols - packs * N;  // before and after the packs
  }
  __device__ int edge(int e) const { return e < lead ? e : e + packs * N; }
  __device__ int pack(int p) const { return lead + p * N; }
};

/// `grads` may be `logits`. Losses are those of each row, unscaled. `shared_packs` packs of a row
/// fit the dynamic shared memory. Packs: of a thread in registers, with a gradient.
template <typename T, typename Target, int N, int Threads, int Packs, bool Gradient, bool Weighted>
__global__ void __launch_bounds__(Threads)
    cross_entropy(const T* logits, long long stride, T* grads, long long grad_stride,
                  const Target* __restrict__ targets, Compute<T>* __restrict__ losses, int cols,
                  int shared_packs, const LossTerms<Compute<T>> terms) {
  using F = Compute<T>;
  extern __shared__ uint4 shared_bytes[];
  Pack<T, N>* const shared = reinterpret_cast<Pack<T, N>*>(shared_bytes);
  const int thread = threadIdx.x;
  const long long row = blockIdx.x;
  const T* const x = logits + row * stride;
  T* const dx = grads + row * grad_stride;
  const long long target = static_cast<long long>(targets[row]);
  if (target == terms.ignored) {
    if constexpr (Gradient)
      for (int c = thread; c < cols; c += Threads) dx[c] = from_compute<T>(F(0));
    if (thread == 0) losses[row] = 0;
    return;
  }
  const bool outside = target < 0 || target >= cols;
  // Smoothing alone takes the weights of all classes.
  const F* const weights = Weighted && terms.smoothing != 0 ? terms.weights : nullptr;
  const auto weights_at = [&](int col) { return Weighted && weights ? weights + col : nullptr; };
  const F weight = Weighted && !outside ? terms.weights[target] : F(1);
  const F of_all = Weighted && weights ? *terms.weight_sum / cols : F(1);
  const F at_target = outside ? F(0) : to_compute(x[target]);
  const RowParts<T, N> parts(x, cols);
  const auto pack_at = [&](int p) {
    return *reinterpret_cast<const Pack<T, N>*>(x + parts.pack(p));
  };

  Seen<F> seen = {lowest<F>(), 0, 0};
  Pack<T, N> held[Packs];
#pragma unroll
  for (int k = 0; k < Packs; ++k)
    if (k * Threads + thread < parts.packs) held[k] = pack_at(k * Threads + thread);
#pragma unroll
  for (int k = 0; k < Packs; ++k)
    if (k * Threads + thread < parts.packs)
      see(seen, held[k].value, weights_at(parts.pack(k * Threads + thread)));
  int next = Packs * Threads;  // the first pack that is not held
  if constexpr (Gradient) {
#pragma unroll 4
    for (int i = thread; i < shared_packs; i += Threads) {
      if (next + i >= parts.packs) break;
      shared[i] = pack_at(next + i);
      see(seen, shared[i].value, weights_at(parts.pack(next + i)));
    }
    next += shared_packs;
  }
#pragma unroll 4
  for (int p = next + thread; p < parts.packs; p += Threads)
    see(seen, pack_at(p).value, weights_at(parts.pack(p)));
  for (int e = thread; e < parts.edges; e += Threads) {
    const T edge[1] = {x[parts.edge(e)]};
    see(seen, edge, weights_at(parts.edge(e)));
  }
  seen = block_reduce<Threads>(seen, Join(), Seen<F>{lowest<F>(), 0, 0});

  const F nan = static_cast<F>(__int_as_float(0x7fffffff));
  const F log_sum = seen.max + log_of(seen.exps);
  if (thread == 0) {
    const F miss = log_sum - at_target, spread = log_sum * of_all - seen.all / cols;
    F loss = weight * ((1 - terms.smoothing) * miss + terms.z * log_sum * log_sum);
    if (terms.smoothing != 0) loss += terms.smoothing * spread;
    losses[row] = outside ? nan : loss;
  }
  if constexpr (Gradient) {
    F scale = terms.scale == nullptr ? F(1) : *terms.scale;
    if (terms.upstream != nullptr) scale *= terms.upstream[row * terms.upstream_stride];
    if (outside) scale = nan;
    const F slope = weight * (1 + 2 * terms.z * log_sum) + terms.smoothing * (of_all - weight);
    const RowGradient<F> gradient = {log_sum,
                                     scale * slope,
                                     scale * terms.smoothing / cols,
                                     scale * weight * (1 - terms.smoothing),
                                     target,
                                     weights};
    const auto write = [&](int p, Pack<T, N>& pack) {
      const int col = parts.pack(p);
      gradient.put(pack.value, col);
      *reinterpret_cast<Pack<T, N>*>(dx + col) = pack;
    };
#pragma unroll
    for (int k = 0; k < Packs; ++k)
      if (k * Threads + thread < parts.packs) write(k * Threads + thread, held[k]);
    next = Packs * Threads;
    for (int i = thread; i < shared_packs && next + i < parts.packs; i += Threads)
      write(next + i, shared[i]);
    next += shared_packs;
    for (int p = next + thread; p < parts.packs; p += 4 * Threads) {
      Pack<T, N> again[4];  // all four are on their way before the first is written
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (p + k * Threads < parts.packs) again[k] = pack_at(p + k * Threads);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (p + k * Threads < parts.packs) write(p + k * Threads, again[k]);
    }
    for (int e = thread; e < parts.edges; e += Threads) {
      const int col = parts.edge(e);
      T edge[1] = {x[col]};
      gradient.put(edge, col);
      dx[col] = edge[0];
    }
  }
}

/// 1 / (how many targets are not ignored); one block of 1024 threads.
template <typename Target, typename F>
__global__ void __launch_bounds__(1024)
    target_scale(const Target* __restrict__ targets, long long rows, long long ignored,
                 F* __restrict__ scale) {
  long long count = 0;
  for (long long i = threadIdx.x; i < rows; i += 1024)
    count += static_cast<long long>(targets[i]) != ignored;
  count = block_reduce<1024>(count, Sum(), 0LL);
  if (threadIdx.x == 0) *scale = F(1) / static_cast<F>(count);
}

/// 1 / (the sum of the weights of targets that are not ignored); one block of 1024 threads.
template <typename Target, typename F>
__global__ void __launch_bounds__(1024)
    weighted_scale(const Target* __restrict__ targets, long long rows, long long ignored,
                   F* __restrict__ scale, const F* __restrict__ weights, int cols) {
  double sum = 0;
  for (long long i = threadIdx.x; i < rows; i += 1024) {
    const long long target = static_cast<long long>(targets[i]);
    if (target != ignored && target >= 0 && target < cols) sum += weights[target];
  }
  sum = block_reduce<1024>(sum, Sum(), 0.0);
  if (threadIdx.x == 0) *scale = static_cast<F>(1 / sum);
}
