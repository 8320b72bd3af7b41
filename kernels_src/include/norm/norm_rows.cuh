// Shared by the norms' kernels: kinds, the affine part, the statistics of a row.
#pragma once

#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>
#include <kernwright/rows.cuh>

namespace kernwright {

/// y = x / sqrt(mean(x^2) + eps); (x - mean) / sqrt(variance + eps); x / max(sqrt(sum(x^2)), eps).
enum NormKind { kRms, kLayer, kL2 };

/// Weight and bias, either of them or both absent (null): one each for every element of a row, or
/// for every channel. Row r then has `per_row` channels of `spatial` elements, from channel
/// r % groups * per_row on.
struct AffineArguments {
  const void* weight;
  const void* bias;
  int groups, per_row, spatial;
};

/// The elements of pack number `pack` of a row, `none` without an array. With `Channels` all
/// elements of a pack have the same channel.
template <bool Channels, int V, typename W, typename C>
__device__ __forceinline__ void load_affine(C (&values)[V], const void* array,
                                            const AffineArguments& affine, long long row, int pack,
                                            C none) {
  const W* const from = static_cast<const W*>(array);
  if (from == nullptr) {
#pragma unroll
    for (int j = 0; j < V; ++j) values[j] = none;
  } else if constexpr (Channels) {
    const int first = static_cast<int>(row % affine.groups) * affine.per_row;
    const C all = static_cast<C>(to_compute(from[first + pack * V / affine.spatial]));
#pragma unroll
    for (int j = 0; j < V; ++j) values[j] = all;
  } else {
    const Pack<W, V> raw = reinterpret_cast<const Pack<W, V>*>(from)[pack];
#pragma unroll
    for (int j = 0; j < V; ++j) values[j] = static_cast<C>(computed(raw.value, j));
  }
}

/// The elements of a thread's packs, of `packs` from pack number `first` of a row on.
template <int V, int Items, int Width, typename W, typename C>
__device__ __forceinline__ void load_affine_packs(C (&values)[V * Items], const void* array,
                                                  int first, int lane, int packs, C none) {
  Pack<W, V> raw[Items];
  if (array != nullptr)
    load_raw<V, Items, Width>(raw, static_cast<const W*>(array) + first * V, lane, packs);
#pragma unroll
  for (int i = 0; i < V * Items; ++i)
    values[i] = array != nullptr ? static_cast<C>(computed(raw[i / V].value, i % V)) : none;
}

/// The parts of the affine step in a launch, if its kernel loads them early: kNotHeld, or the sum
/// of kHeldWeight and kHeldBias.
constexpr int kNotHeld = -1, kHeldWeight = 1, kHeldBias = 2;

/// Weight and bias of a thread's packs of a row. Where they are `Held`, they are loaded ahead of
/// their use and take registers; for launches whose blocks all run at once.
template <int Held, bool Channels, typename W, int V, int Items, int Width>
struct HeldAffine {
  static constexpr bool kWeight = Held > 0 && (Held & kHeldWeight) != 0;
  static constexpr bool kBias = Held > 0 && (Held & kHeldBias) != 0;
  static_assert(Held == kNotHeld || !Channels,
                "channels are few: they are loaded where they are used");
  Pack<W, V> weight[kWeight ? Items : 1], bias[kBias ? Items : 1];

  __device__ __forceinline__ HeldAffine(const AffineArguments& affine, int lane, int packs,
                                        int first_pack) {
#pragma unroll
    for (int i = 0; i < (kWeight || kBias ? Items : 0); ++i) {
      const int pack = i * Width + lane;
      if (pack >= packs) continue;
      if constexpr (kWeight) weight[i] = at(affine.weight, first_pack + pack);
      if constexpr (kBias) bias[i] = at(affine.bias, first_pack + pack);
    }
  }
  /// The elements of the thread's pack `i`, which is pack `pack` of the row.
  template <typename C>
  __device__ __forceinline__ void get(C (&weights)[V], C (&biases)[V],
                                      const AffineArguments& affine, long long row, int i,
                                      int pack) const {
    if constexpr (Held == kNotHeld) {
      load_affine<Channels, V, W>(weights, affine.weight, affine, row, pack, C(1));
      load_affine<Channels, V, W>(biases, affine.bias, affine, row, pack, C(0));
    } else {
#pragma unroll
      for (int j = 0; j < V; ++j) {
        weights[j] = kWeight ? C(computed(weight[kWeight ? i : 0].value, j)) : C(1);
        biases[j] = kBias ? C(computed(bias[kBias ? i : 0].value, j)) : C(0);
      }
    }
  }

 private:
  __device__ static const Pack<W, V>& at(const void* array, int pack) {
    return static_cast<const Pack<W, V>*>(array)[pack];
  }
};

__device__ __forceinline__ float math_sqrt(float x) { return sqrtf(x); }
__device__ __forceinline__ double math_sqrt(double x) { return sqrt(x); }
/// To two units in the last place, which takes a third of the time of a root and a division.
__device__ __forceinline__ float one_over_root(float x) { return rsqrtf(x); }
__device__ __forceinline__ double one_over_root(double x) { return 1.0 / sqrt(x); }

template <typename C>
struct alignas(2 * sizeof(C)) Two {
  C a, b;
};
struct SumTwo {
  template <typename C>
  __device__ __forceinline__ Two<C> operator()(Two<C> x, Two<C> y) const {
    return {x.a + y.a, x.b + y.b};
  }
};

/// x_hat = (x - mean) * factor.
template <typename C>
struct alignas(2 * sizeof(C)) RowStatistics {
  C mean, factor;
};

/// `squares`: the sum of (x - mean)^2.
template <int Kind, typename C>
__device__ __forceinline__ RowStatistics<C> finish_statistics(C mean, C squares, long long n,
                                                              C eps) {
  if (Kind == kL2) {
    const C norm = math_sqrt(squares);
    return {C(0), C(1) / (norm > eps || norm != norm ? norm : eps)};
  }
  return {mean, one_over_root(squares / static_cast<C>(n) + eps)};
}

}  // namespace kernwright
