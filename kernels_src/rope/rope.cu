// Rotary embedding of queries and keys (J. Su et al., "RoFormer", 2021) by tables of cosines and
// sines.
#include <kernwright/elements.cuh>
#include <kernwright/rope_angles.cuh>
#include <kernwright/tokens.cuh>

using namespace kernwright;

constexpr int kThreads = 256;
constexpr int kHeads = 4;  // that a thread turns by the same angles

/// N pairs: neighbours where the layout is interleaved, else elements `half` apart.
template <typename T, int N, bool Interleaved>
struct Pairs {
  Pack<T, N> first, second;

  __device__ __forceinline__ void load(const T* head, int pair, int half) {
    if constexpr (!Interleaved) {
      first = *reinterpret_cast<const Pack<T, N>*>(head + pair);
      second = *reinterpret_cast<const Pack<T, N>*>(head + half + pair);
    } else if constexpr (N == 1) {  // need not be aligned to two elements
      first.value[0] = head[2 * pair];
      second.value[0] = head[2 * pair + 1];
    } else {
      const Pack<T, 2 * N> both = *reinterpret_cast<const Pack<T, 2 * N>*>(head + 2 * pair);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        first.value[j] = both.value[2 * j];
        second.value[j] = both.value[2 * j + 1];
      }
    }
  }

  __device__ __forceinline__ void turn(const float (&cosine)[N], const float (&sine)[N]) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      using C = Compute<T>;
      const C a = to_compute(first.value[j]), b = to_compute(second.value[j]);
      const C c = static_cast<C>(cosine[j]), s = static_cast<C>(sine[j]);
      first.value[j] = from_compute<T>(turned_first(a, b, c, s));
      second.value[j] = from_compute<T>(turned_second(a, b, c, s));
    }
  }

  __device__ __forceinline__ void store(T* head, int pair, int half) const {
    if constexpr (!Interleaved) {
      *reinterpret_cast<Pack<T, N>*>(head + pair) = first;
      *reinterpret_cast<Pack<T, N>*>(head + half + pair) = second;
    } else if constexpr (N == 1) {
      head[2 * pair] = first.value[0];
      head[2 * pair + 1] = second.value[0];
    } else {
      Pack<T, 2 * N> both;
#pragma unroll
      for (int j = 0; j < N; ++j) {
        both.value[2 * j] = first.value[j];
        both.value[2 * j + 1] = second.value[j];
      }
      *reinterpret_cast<Pack<T, 2 * N>*>(head + 2 * pair) = both;
    }
  }
};

/// Heads are those of q, then those of k; each item of a token is one pack of four heads. The first
/// packs of a head turn, the `rest` after them (of N elements) are copied. `direction` is 1, or -1
/// for the inverse. Positions outside of the tables give NaN.
template <typename T, typename Id, int N, bool Interleaved>
__global__ void __launch_bounds__(kThreads)
    rotate(const TokenArray<T> q, const TokenArray<T> k, const RopeTables tables,
           const Positions<Id> positions, int rest, unsigned tokens_each, float direction) {
  const int turning = tables.half / N, packs = turning + rest, heads = q.heads + k.heads;
  const unsigned items = static_cast<unsigned>(packs) * ((heads + kHeads - 1) / kHeads);
  const auto work = [&](unsigned batch, unsigned token, unsigned item) {
    const int group = static_cast<int>(item) / packs, pack = static_cast<int>(item) % packs;
    const T* from[kHeads];
    T* to[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      const int head = group * kHeads + h;
      const bool is_q = head < q.heads;
      from[h] = is_q ? q.source(batch, token, head) : k.source(batch, token, head - q.heads);
      to[h] = is_q ? q.target(batch, token, head) : k.target(batch, token, head - q.heads);
    }
    const int count = heads - group * kHeads;
    if (pack >= turning) {
      const int at = 2 * tables.half + (pack - turning) * N;
      Pack<T, N> copied[kHeads];
#pragma unroll
      for (int h = 0; h < kHeads; ++h)
        if (h < count) copied[h] = *reinterpret_cast<const Pack<T, N>*>(from[h] + at);
#pragma unroll
      for (int h = 0; h < kHeads; ++h)
        if (h < count) *reinterpret_cast<Pack<T, N>*>(to[h] + at) = copied[h];
      return;
    }
    const int pair = pack * N;
    Pairs<T, N, Interleaved> pairs[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h)
      if (h < count) pairs[h].load(from[h], pair, tables.half);
    const long long position = positions.at(batch, token);
    const bool inside = position >= 0 && position < tables.rows;
    const long long row = (inside ? position : 0) * tables.half + pair;
    float cosine[N], sine[N];
    load_angles(tables.cos + row, inside ? 1.0f : __int_as_float(0x7fffffff), cosine);
    load_angles(tables.sin + row, inside ? direction : __int_as_float(0x7fffffff), sine);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (h >= count) continue;
      pairs[h].turn(cosine, sine);
      pairs[h].store(to[h], pair, tables.half);
    }
  };
  for_token_items<kThreads>(positions, items, tokens_each, work);
}
