// Where a cache stores the keys and values of new tokens, and the conversion to the cache's
// elements.
#pragma once

#include <kernwright/attention.cuh>

namespace kernwright {

/// Keys or values; distances in elements.
struct CacheSide {
  const void* from;
  void* to;
  HeadStrides from_at, to_at;  ///< with pages, `batch` of to_at is a page
  const float* scales;         ///< of each head, or null
  float* token_scales;         ///< of each token and head, written with the tokens, or null
  HeadStrides scales_at;       ///< of token_scales
  int dim, packs;
};

struct CacheAppend {
  CacheSide side[2];
  const int* positions;  ///< of each batch's first token
  const int* rows;       ///< each batch's row in the table or the cache; null: the batch number
  const int* table;
  long long table_row;
  int page_size, pages, page_limit;
  int batches, heads, tokens, capacity, row_count;

  /// The offset of a token and head in an array with these strides; kNoRow where the array has no
  /// place for the token.
  __device__ __forceinline__ long long offset(const HeadStrides& strides, int batch, int head,
                                              int token) const {
    const long long number = static_cast<long long>(positions[batch]) + token;
    const int row = rows == nullptr ? batch : rows[batch];
    if (number < 0 || number >= capacity || row < 0 || row >= row_count) return kNoRow;
    const int* const row_pages = table == nullptr ? nullptr : table + row * table_row;
    const long long within = token_offset(*this, row_pages, strides, static_cast<int>(number));
    if (within == kNoRow) return kNoRow;
    return (table == nullptr ? row * strides.batch : 0) + head * strides.head + within;
  }
  /// The first element of a token and head in a cache of elements E; null where it has no place.
  template <typename E>
  __device__ __forceinline__ E* place(const CacheSide& side, int batch, int head, int token) const {
    const long long first = offset(side.to_at, batch, head, token);
    return first == kNoRow ? nullptr : static_cast<E*>(side.to) + first;
  }
};

template <typename E>
struct ToCache {
  /// The largest number of the format.
  __device__ static constexpr float most() {
    return sizeof(E) == 1 ? (E::kOverflow == 0x7fu ? 448.0f : 57344.0f) : 3.4e38f;
  }
  /// `x` in steps of the scale, inside of the format's range.
  __device__ static E apply(float x, float scale) {
    const float step = x / scale;
    return from_compute<E>(step > most() ? most() : step < -most() ? -most() : step);
  }
};
template <>
struct ToCache<Int8> {
  __device__ static constexpr float most() { return 127.0f; }
  __device__ static Int8 apply(float x, float scale) {
    const float step = rintf(x / scale);
    return static_cast<Int8>(static_cast<int>(step > 127 ? 127 : step < -127 ? -127 : step));
  }
};

/// Converts an element to the cache's type: T itself, or a type of 8 bits.
template <typename E, typename T>
__device__ __forceinline__ E cache_element(T x, float scale) {
  if constexpr (sizeof(T) == sizeof(E)) {
    return x;
  } else {
    return ToCache<E>::apply(to_compute(x), scale);
  }
}

}  // namespace kernwright
