// The gradient of a normalised row: its sums, and what follows from them.
#pragma once

#include <kernwright/norm_rows.cuh>

namespace kernwright {

/// dx of an element: factor * (g - mean_g - x_hat * slope), g = dy * weight.
template <typename C>
struct NormGradient {
  RowStatistics<C> row_is;
  C mean_g, slope;

  __device__ __forceinline__ C normal(C x) const { return (x - row_is.mean) * row_is.factor; }
  __device__ __forceinline__ C operator()(C x, C g) const {
    return row_is.factor * (g - mean_g - normal(x) * slope);
  }
};

/// `squares`: sum of (x - mean)^2, `centred_g`: sum of (x - mean) * g, `sum_g`: sum of g.
template <int Kind, typename C>
__device__ __forceinline__ NormGradient<C> finish_norm_gradient(C mean, C squares, C centred_g,
                                                                C sum_g, long long n, C eps) {
  NormGradient<C> row;
  row.row_is = finish_statistics<Kind>(mean, squares, n, eps);
  const C slope = row.row_is.factor * centred_g;
  if (Kind == kL2) {
    row.slope = math_sqrt(squares) <= eps ? C(0) : slope;
  } else {
    row.slope = slope / static_cast<C>(n);
  }
  row.mean_g = Kind == kLayer ? sum_g / static_cast<C>(n) : C(0);
  return row;
}

/// Calls visit(slot, weight) for a thread's elements of a row. The weights come from a cache each
/// time, so they take no registers.
template <typename W, int V, int Items, int Width, bool Channels, typename C>
struct HeldRow {
  const AffineArguments& affine;
  long long row;
  int lane, packs;

  template <typename Visit>
  __device__ __forceinline__ void operator()(Visit visit) const {
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int pack = i * Width + lane;
      if (pack >= packs) continue;
      C weight[V];
      load_affine<Channels, V, W>(weight, affine.weight, affine, row, pack, C(1));
#pragma unroll
      for (int j = 0; j < V; ++j) visit(i * V + j, weight[j]);
    }
  }
};

/// The sums of a row's elements, in one reduction, or in two for layers. `for_row` calls
/// visit(slot, weight).
template <int Kind, int Width, int Threads, typename C, typename ForRow>
__device__ __forceinline__ NormGradient<C> reduce_row(const C* x, const C* dy, int n, C eps,
                                                      ForRow for_row) {
  const Two<C> none = {C(0), C(0)};
  Two<C> plain = none, squared = none;
  if (Kind == kLayer) {
    for_row([&](int slot, C weight) {
      plain.a += x[slot];
      plain.b += dy[slot] * weight;
    });
    plain = row_reduce<Width, Threads, 0>(plain, SumTwo(), none);
  }
  const C mean = plain.a / static_cast<C>(n);
  for_row([&](int slot, C weight) {
    const C off = x[slot] - mean;
    squared.a += off * off;
    squared.b += off * (dy[slot] * weight);
  });
  squared = row_reduce < Width, Threads, Kind == kLayer ? 1 : -1 > (squared, SumTwo(), none);
  return finish_norm_gradient<Kind>(mean, squared.a, squared.b, plain.b, n, eps);
}

/// Memory of write_partial(), the same for all types of its results.
template <int Count, typename C>
__device__ __forceinline__ C* shared_accumulators() {
  __shared__ C memory[Count];
  return memory;
}

/// Adds the accumulators of the rows that a block works on at once, and writes the block's partial
/// sums.
template <int V, int Items, int Width, int Threads, typename To, typename C>
__device__ __forceinline__ void write_partial(To* partial, C (&sums)[V * Items], int n) {
  constexpr int kRows = Threads / Width, kSlots = V * Items * Width;
  const int lane = threadIdx.x % Width, packs = n / V;
  if constexpr (kRows == 1) {
    store_held<V, Items, Width>(partial, lane, packs, [&](int slot, int) { return sums[slot]; });
  } else {
    C* const memory = shared_accumulators<kRows * kSlots, C>();
    __syncthreads();  // an earlier call may still be read
    for_held<V, Items, Width>(lane, packs, [&](int slot, int element) {
      memory[threadIdx.x / Width * kSlots + element] = sums[slot];
    });
    __syncthreads();
    for (int element = threadIdx.x; element < n; element += Threads) {
      C sum = memory[element];
      for (int r = 1; r < kRows; ++r) sum += memory[r * kSlots + element];
      partial[element] = from_compute<To>(static_cast<Compute<To>>(sum));
    }
  }
}

}  // namespace kernwright
