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
  CacheAppend cache;  ///< with keys and values as they come
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
      Columns<T, N> own;
      own.load(static_cast<const T*>(weights.values) + column);
#pragma unroll
      for (int j = 0; j < N; ++j) weight[j] = own.value[j];
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
  float factor;     ///< of the norm
  long long angle;  ///< row of the tables; outside of them: NaN
};

/// Turns the columns from `column` on; their partners are read again.
template <bool Interleaved, typename T, int N>
__device__ __forceinline__ void turn(Columns<T, N>& x, const HeadRow<T>& row,
                                     const RopeTables& tables, int column) {
  constexpr bool kInside = Interleaved && N > 1;  // partners are neighbours in x
  constexpr int kPairs = kInside ? N / 2 : N;
  const int half = tables.half;
  const bool second = Interleaved ? column % 2 != 0 : column >= half;
  const int pair = Interleaved ? column / 2 : second ? column - half : column;
  const bool inside = row.angle >= 0 && row.angle < tables.rows;
  const long long first = (inside ? row.angle : 0) * half + pair;
  float cosine[kPairs], sine[kPairs];
  load_angles(tables.cos + first, inside ? 1.0f : not_a_number(), cosine);
  load_angles(tables.sin + first, inside ? 1.0f : not_a_number(), sine);
  if constexpr (kInside) {
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const float a = x.value[2 * j], b = x.value[2 * j + 1];
      x.value[2 * j] = turned_first(a, b, cosine[j], sine[j]);
      x.value[2 * j + 1] = turned_second(a, b, cosine[j], sine[j]);
    }
  } else {
    const int other =
        Interleaved ? (second ? column - 1 : column + 1) : (second ? column - half : column + half);
    Columns<T, N> partner;
    partner.load(row.from + other);
    partner.normalize(row.factor, row.weights, other);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float a = x.value[j], b = partner.value[j];
      x.value[j] =
          second ? turned_second(b, a, cosine[j], sine[j]) : turned_first(a, b, cosine[j], sine[j]);
    }
  }
}

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

/// `Width` threads take a head of a token, in packs of N elements. E: elements of the caches; with
/// TokenScales a head's largest magnitude becomes the largest number of E.
template <typename T, typename E, int N, int Items, int Width, bool Interleaved, bool Norms,
          bool TokenScales = false>
__global__ void __launch_bounds__(kThreads) append_qkv(const __grid_constant__ AppendQkv call) {
  wait_then_let_next_begin();
  const CacheAppend& cache = call.cache;
  const int lane = threadIdx.x % Width;
  unsigned long long number =
      static_cast<unsigned long long>(blockIdx.x) * (kThreads / Width) + threadIdx.x / Width;
  const int all = call.heads + 2 * cache.heads;
  int head = static_cast<int>(number % all);
  number /= all;
  const int token = static_cast<int>(number % cache.tokens);
  number /= cache.tokens;
  const bool exists = number < static_cast<unsigned long long>(cache.batches);
  const int batch = exists ? static_cast<int>(number) : 0;
  const int part = head < call.heads ? 0 : head < call.heads + cache.heads ? 1 : 2;
  head -= part == 0 ? 0 : part == 1 ? call.heads : call.heads + cache.heads;

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
    row.factor = statistics_of<kRms>(0.0f, squares, side.dim, call.eps).factor;
  }
  if (!TokenScales && !exists) return;
  E* const place = part == 0 || !exists ? nullptr : cache.place<E>(side, batch, head, token);
  const bool goes_nowhere = !exists || (part != 0 && place == nullptr);
  if (!TokenScales && goes_nowhere) return;
  T* const out = static_cast<T*>(call.out) + batch * call.out_at.batch + head * call.out_at.head +
                 token * call.out_at.token;
  float scale = part == 0 || side.scales == nullptr ? 1.0f : side.scales[head];
  const bool rotates = part < 2 && call.tables.cos != nullptr;
  if (rotates) {
    row.angle = call.positions == nullptr
                    ? static_cast<long long>(cache.positions[batch]) + token
                    : call.positions[static_cast<long long>(batch) * cache.tokens + token];
  }
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
      turn<Interleaved>(columns[i], row, call.tables, column);
    if constexpr (!TokenScales) keep(columns[i], column);
  }
  if constexpr (TokenScales) {
    const unsigned most = largest_magnitude<T, Width>(columns, packs);
    if (goes_nowhere) return;
    if (part != 0) {
      scale = __uint_as_float(most) / ToCache<E>::most();
      if (lane == 0) side.token_scales[cache.offset(side.scales_at, batch, head, token)] = scale;
      if (scale == 0) scale = 1;  // all elements of the head are 0
    }
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int column = (i * Width + lane) * N;
      if (column < packs * N) keep(columns[i], column);
    }
  }
}
