// Arrays of (batch, token, head, element) in any order of the first three, and tokens' positions.
#pragma once

namespace kernwright {

/// Strides in elements; the elements of a head are contiguous.
struct TokenStrides {
  long long batch, token, head;
};

/// A query or a key: where it is read and written. 0 heads: none.
template <typename T>
struct TokenArray {
  const T* from;
  T* to;
  TokenStrides from_strides, to_strides;
  int heads;

  __device__ __forceinline__ const T* source(unsigned batch, unsigned token, int head) const {
    return from + batch * from_strides.batch + token * from_strides.token +
           head * from_strides.head;
  }
  __device__ __forceinline__ T* target(unsigned batch, unsigned token, int head) const {
    return to + batch * to_strides.batch + token * to_strides.token + head * to_strides.head;
  }
};

/// Positions of tokens: offset + the token's number, or offset + ids[batch * stride + number].
template <typename Id>
struct Positions {
  const Id* ids;  ///< or null
  long long batch_stride, offset;
  unsigned batches, tokens;

  __device__ __forceinline__ long long at(unsigned batch, unsigned token) const {
    if (ids == nullptr) return offset + token;
    return offset + static_cast<long long>(ids[batch * batch_stride + token]);
  }
};

/// The shares of a block's threads: `items` a token, tokens_each tokens a block. Calls
/// work(batch, token, item).
template <int Threads, typename Id, typename Work>
__device__ __forceinline__ void for_token_items(const Positions<Id>& positions, unsigned items,
                                                unsigned tokens_each, Work work) {
  const unsigned long long all =
      static_cast<unsigned long long>(positions.batches) * positions.tokens;
  for (unsigned i = threadIdx.x; i < items * tokens_each; i += Threads) {
    const unsigned long long flat =
        static_cast<unsigned long long>(blockIdx.x) * tokens_each + i / items;
    if (flat >= all) return;
    const unsigned batch = static_cast<unsigned>(flat / positions.tokens);
    const unsigned token = static_cast<unsigned>(flat - static_cast<unsigned long long>(batch) *
                                                            positions.tokens);
    work(batch, token, i % items);
  }
}

}  // namespace kernwright
