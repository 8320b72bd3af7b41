// New tokens' keys and values go to their places in caches, contiguous ones or pages.
#include <kernwright/attention.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// Keys or values; distances in elements.
struct CacheSide {
  const void* from;
  void* to;
  HeadStrides from_at, to_at;  ///< with pages, `batch` of to_at is a page
  const float* scales;         ///< of each head, or null
  int dim, packs;
};

struct CacheAppend {
  CacheSide side[2];
  const int* positions;  ///< of each batch's first token
  const int* table;
  long long table_row;
  int page_size, pages, page_limit;
  int batches, heads, tokens, capacity;
};

template <typename E>
struct ToCache {
  /// `x` in steps of the scale, inside of the format's range.
  __device__ static E of(float x, float scale) {
    const float most = sizeof(E) == 1 ? (E::kOverflow == 0x7fu ? 448.0f : 57344.0f) : 3.4e38f;
    const float step = x / scale;
    return from_compute<E>(step > most ? most : step < -most ? -most : step);
  }
};
template <>
struct ToCache<Int8> {
  __device__ static Int8 of(float x, float scale) {
    const float step = rintf(x / scale);
    return static_cast<Int8>(static_cast<int>(step > 127 ? 127 : step < -127 ? -127 : step));
  }
};

/// A thread moves N elements of one token and head. Tokens without a place are left out.
template <typename T, typename E, int N>
__global__ void __launch_bounds__(kThreads) append_cache(const __grid_constant__ CacheAppend call) {
  const CacheSide& side = call.side[blockIdx.y];
  const unsigned long long item =
      static_cast<unsigned long long>(blockIdx.x) * kThreads + threadIdx.x;
  const int column = static_cast<int>(item % side.packs) * N;
  unsigned long long row = item / side.packs;
  const int head = static_cast<int>(row % call.heads);
  row /= call.heads;
  const int token = static_cast<int>(row % call.tokens);
  row /= call.tokens;
  if (row >= static_cast<unsigned long long>(call.batches)) return;
  const int batch = static_cast<int>(row);
  const long long place = static_cast<long long>(call.positions[batch]) + token;
  if (place < 0 || place >= call.capacity) return;
  const int* const table = call.table == nullptr ? nullptr : call.table + batch * call.table_row;
  const long long at = token_offset(call, table, side.to_at, static_cast<int>(place));
  if (at == kNoRow) return;
  const T* const from = static_cast<const T*>(side.from) + batch * side.from_at.batch +
                        head * side.from_at.head + token * side.from_at.token + column;
  E* const to = static_cast<E*>(side.to) + (table == nullptr ? batch * side.to_at.batch : 0) +
                head * side.to_at.head + at + column;
  const auto pack = *reinterpret_cast<const Pack<T, N>*>(from);
  Pack<E, N> moved;
  const float scale = side.scales == nullptr ? 1.0f : side.scales[head];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if constexpr (sizeof(T) == sizeof(E)) {
      moved.value[i] = pack.value[i];
    } else {
      moved.value[i] = ToCache<E>::of(to_compute(pack.value[i]), scale);
    }
  }
  *reinterpret_cast<Pack<E, N>*>(to) = moved;
}
