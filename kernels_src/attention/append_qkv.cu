// Queries, keys and values of new tokens, in one pass: queries and keys are normalised and turned,
// keys and values go to their places in caches.
#include <kernwright/norm_rows.cuh>
#include <kernwright/overlap.cuh>
#include <kernwright/rope_angles.cuh>
#include <kernwright/token_cache.cuh>

using namespace kernwright;

constexpr int kThreads = 128;

/// Weights of one norm, an element for each column of a head: of the tokens' type or float32.
struct HeadWeights {
  const void* values;  ///< or null: no norm
  int wide;            ///< float32
};

struct AppendQkv {
  CacheAppend cache;  ///< with keys and values as the cache stores them
  const void* q;
  void* out;
  HeadStrides q_at, out_at;
  HeadWeights q_norm, k_norm;
  RopeTables tables;     ///< cos is null: nothing rotates
  const int* positions;  ///< in the tables, of each token; null: places in the cache
  int heads;
  float eps;
};

/// N neighbours of a head.
template <typename T, int N>
struct Columns {
  float value[N];

  __device__ __forceinline__ void load(const T* from) {
    const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(from);
#pragma unroll
    for (int j = 0; j < N; ++j) value[j] = to_compute(pack.value[j]);
  }
  /// The output of a separate norm.
  __device__ __forceinline__ void normalize(float factor, const HeadWeights& weights, int column) {
    if (weights.values == nullptr) return;
    float weight[N];
    if (weights.wide) {
      load_angles(static_cast<const float*>(weights.values) + column, 1.0f, weight);
    } else {
      Columns<T, N> loaded;
      loaded.load(static_cast<const T*>(weights.values) + column);
#pragma unroll
      for (int j = 0; j < N; ++j) weight[j] = loaded.value[j];
    }
#pragma unroll
    for (int j = 0; j < N; ++j)
      value[j] = to_compute(from_compute<T>(value[j] * factor * weight[j]));
  }
};

/// One head of one token.
template <typename T>
struct HeadRow {
  const T* from;
  HeadWeights weights;
  float factor;  ///< of the norm
};

/// The rotation of the columns from one on: all heads of a token share the angles.
template <bool Interleaved, int N>
struct Rotation {
  static constexpr bool kInside = Interleaved && N > 1;  // partners are neighbours in a pack
  static constexpr int kPairs = kInside ? N / 2 : N;
  float cosine[kPairs], sine[kPairs];
  int column;

  /// `angle` is a row of the tables; outside of them all becomes NaN.
  __device__ __forceinline__ void load(const RopeTables& tables, long long angle, int at) {
    column = at;
    const int pair = Interleaved ? at / 2 : is_second(tables.half) ? at - tables.half : at;
    const bool inside = angle >= 0 && angle < tables.rows;
    const long long first = (inside ? angle : 0) * tables.half + pair;
    load_angles(tables.cos + first, inside ? 1.0f : not_a_number(), cosine);
    load_angles(tables.sin + first, inside ? 1.0f : not_a_number(), sine);
  }
  __device__ __forceinline__ bool is_second(int half) const {
    return Interleaved ? column % 2 != 0 : column >= half;
  }
  /// Partners that are not in x are read again.
  template <typename T>
  __device__ __forceinline__ void apply(Columns<T, N>& x, const HeadRow<T>& row, int half) const {
    if constexpr (kInside) {
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        const float a = x.value[2 * j], b = x.value[2 * j + 1];
        x.value[2 * j] = turned_first(a, b, cosine[j], sine[j]);
        x.value[2 * j + 1] = turned_second(a, b, cosine[j], sine[j]);
      }
    } else {
      const bool second = is_second(half);
      const int other = column + (second ? -1 : 1) * (Interleaved ? 1 : half);
      Columns<T, N> partner;
      partner.load(row.from + other);
      partner.normalize(row.factor, row.weights, other);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const float a = x.value[j], b = partner.value[j];
        x.value[j] = second ? turned_second(b, a, cosine[j], sine[j])
                            : turned_first(a, b, cosine[j], sine[j]);
      }
    }
  }
};

template <typename E, typename T, int N>
__device__ __forceinline__ void store(E* to, const Columns<T, N>& x, float scale) {
  Pack<E, N> pack;
#pragma unroll
  for (int j = 0; j < N; ++j) pack.value[j] = cache_element<E>(from_compute<T>(x.value[j]), scale);
  *reinterpret_cast<Pack<E, N>*>(to) = pack;
}

/// The bits of the largest magnitude of a head's elements, rounded to T; a head with NaN gives bits
/// of NaN. All lanes of a warp call this function.
template <typename T, int Width, int N, int Items>
__device__ __forceinline__ unsigned largest_magnitude(const Columns<T, N> (&columns)[Items],
                                                      int packs) {
  unsigned most = 0;
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    if (i * Width + static_cast<int>(threadIdx.x) % Width >= packs) continue;
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float rounded = to_compute(from_compute<T>(columns[i].value[j]));
      most = max(most, __float_as_uint(rounded) & 0x7fffffffu);
    }
  }
  return warp_reduce<Width>(most, [](unsigned a, unsigned b) { return max(a, b); });
}

/// A block takes one token: `Width` threads a head of it, in packs of N elements, and so on through
/// the heads of the block's share (blockIdx.y). E: elements of the caches; with TokenScales a
/// head's largest magnitude becomes the largest number of E.
template <typename T, typename E, int N, int Items, int Width, bool Interleaved, bool Norms,
          bool TokenScales = false>
__global__ void __launch_bounds__(kThreads) append_qkv(const __grid_constant__ AppendQkv call) {
  pdl_wait_then_launch();
  constexpr int kHeads = kThreads / Width;  // at a time
  const CacheAppend& cache = call.cache;
  const int lane = threadIdx.x % Width;
  const int batch = blockIdx.x / static_cast<unsigned>(cache.tokens);
  const int token = blockIdx.x - batch * cache.tokens;
  const int all = call.heads + 2 * cache.heads;
  const long long number = static_cast<long long>(cache.positions[batch]) + token;
  const long long angle = call.positions == nullptr ? number : call.positions[blockIdx.x];
  const int cache_row = cache.row(batch);
  Rotation<Interleaved, N> rotations[Items];
  CacheSlot slot{};
  const auto find_places = [&] {
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int column = (i * Width + lane) * N;
      if (column < 2 * call.tables.half) rotations[i].load(call.tables, angle, column);
    }
    slot = cache.slot(cache_row, number);
  };
  // All lanes of a warp go through the loop as often, for the reductions inside.
  for (int first = blockIdx.y * kHeads; first < all; first += gridDim.y * kHeads) {
    const int number = first + static_cast<int>(threadIdx.x) / Width;
    const bool exists = number < all;
    const int part = number < call.heads ? 0 : number < call.heads + cache.heads ? 1 : 2;
    const int head =
        exists ? number - (part == 0 ? 0 : call.heads + (part == 1 ? 0 : cache.heads)) : 0;
    const CacheSide& side = cache.side[part == 2];
    const HeadStrides& at = part == 0 ? call.q_at : side.from_at;
    HeadRow<T> row{};
    row.from = static_cast<const T*>(part == 0 ? call.q : side.from) + batch * at.batch +
               head * at.head + token * at.token;
    const int packs = exists ? side.packs : 0;
    Columns<T, N> columns[Items];
#pragma unroll
    for (int i = 0; i < Items; ++i)
      if (i * Width + lane < packs) columns[i].load(row.from + (i * Width + lane) * N);
    if (first == blockIdx.y * kHeads) find_places();  // while the elements are on their way
    if constexpr (Norms) {
      if (part < 2) row.weights = part == 0 ? call.q_norm : call.k_norm;
      float squares = 0;
#pragma unroll
      for (int i = 0; i < Items; ++i) {
        if (i * Width + lane >= packs) continue;
#pragma unroll
        for (int j = 0; j < N; ++j) squares += columns[i].value[j] * columns[i].value[j];
      }
      squares = warp_reduce<Width>(squares, Sum());
      row.factor = finish_statistics<kRms>(0.0f, squares, side.dim, call.eps).factor;
    }
    if (!TokenScales && !exists) continue;
    const bool goes_nowhere = !exists || (part != 0 && slot.page < 0);
    if (!TokenScales && goes_nowhere) continue;
    E* const place = static_cast<E*>(side.to) + cache.offset(side.to_at, slot, head);
    T* const out = static_cast<T*>(call.out) + batch * call.out_at.batch + head * call.out_at.head +
                   token * call.out_at.token;
    float scale = part == 0 || side.scales == nullptr ? 1.0f : side.scales[head];
    const bool rotates = part < 2 && call.tables.cos != nullptr;
    const auto keep = [&](const Columns<T, N>& done, int column) {
      if (part == 0) {
        store(out + column, done, scale);
      } else {
        store(place + column, done, scale);
      }
    };
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int column = (i * Width + lane) * N;
      if (column >= packs * N) continue;
      columns[i].normalize(row.factor, row.weights, column);
      if (rotates && column < 2 * call.tables.half)
        rotations[i].apply(columns[i], row, call.tables.half);
      if constexpr (!TokenScales) keep(columns[i], column);
    }
    if constexpr (TokenScales) {
      const unsigned most = largest_magnitude<T, Width>(columns, packs);
      if (goes_nowhere) continue;
      if (part != 0) {
        scale = __uint_as_float(most) / ToCache<E>::most();
        if (lane == 0) side.token_scales[cache.offset(side.scales_at, slot, head)] = scale;
        if (scale == 0) scale = 1;  // all elements of the head are 0
      }
#pragma unroll
      for (int i = 0; i < Items; ++i) {
        const int column = (i * Width + lane) * N;
        if (column < packs * N) keep(columns[i], column);
      }
    }
  }
}
