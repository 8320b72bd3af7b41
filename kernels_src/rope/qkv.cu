// Queries, keys and values of one array of rows, as three arrays, and back.
#include <kernwright/elements.cuh>
#include <kernwright/tokens.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// Rows of (q heads + k heads + v heads) * dim elements, `stride` apart; `Merge` writes them.
template <typename T, int N, bool Merge>
__global__ void __launch_bounds__(kThreads)
    split_heads(T* rows, long long stride, const TokenArray<T> q, const TokenArray<T> k,
                const TokenArray<T> v, const Positions<Int64> positions, int dim,
                unsigned tokens_each) {
  const int packs = dim / N;
  const unsigned items = static_cast<unsigned>(q.heads + k.heads + v.heads) * packs;
  const auto work = [&](unsigned batch, unsigned token, unsigned item) {
    int head = static_cast<int>(item) / packs;
    const int col = static_cast<int>(item) % packs * N;
    T* const row = rows + (static_cast<long long>(batch) * positions.tokens + token) * stride +
                   static_cast<long long>(head) * dim + col;
    const TokenArray<T>* part = &q;
    if (head >= q.heads) {
      head -= q.heads;
      part = head < k.heads ? &k : &v;
      if (head >= k.heads) head -= k.heads;
    }
    if constexpr (Merge) {
      const T* const from = part->source(batch, token, head) + col;
      *reinterpret_cast<Pack<T, N>*>(row) = *reinterpret_cast<const Pack<T, N>*>(from);
    } else {
      T* const to = part->target(batch, token, head) + col;
      *reinterpret_cast<Pack<T, N>*>(to) = *reinterpret_cast<const Pack<T, N>*>(row);
    }
  };
  for_token_items<kThreads>(positions, items, tokens_each, work);
}
