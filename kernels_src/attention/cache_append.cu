// New tokens' keys and values go to their places in caches, contiguous ones or pages.
#include <kernwright/token_cache.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

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
  const long long number = static_cast<long long>(call.positions[batch]) + token;
  const CacheSlot slot = call.slot(call.row(batch), number);
  if (slot.page < 0) return;
  E* const to = static_cast<E*>(side.to) + call.offset(side.to_at, slot, head);
  const T* const from = static_cast<const T*>(side.from) + batch * side.from_at.batch +
                        head * side.from_at.head + token * side.from_at.token + column;
  const auto pack = *reinterpret_cast<const Pack<T, N>*>(from);
  Pack<E, N> moved;
  const float scale = side.scales == nullptr ? 1.0f : side.scales[head];
#pragma unroll
  for (int i = 0; i < N; ++i) moved.value[i] = cache_element<E>(pack.value[i], scale);
  *reinterpret_cast<Pack<E, N>*>(to + column) = moved;
}
