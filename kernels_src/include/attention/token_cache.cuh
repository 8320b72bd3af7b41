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

/// A token's page, or its row of a cache without pages, and its number there. A page of -1 is none.
struct CacheSlot {
  int page, token;
};

struct CacheAppend {
  CacheSide side[2];
  const int* positions;  ///< of each batch's first token
  const int* rows;       ///< each batch's row in the table or the cache; null: the batch number
  const int* table;
  long long table_row;
  int page_size, pages, page_limit;
  int batches, heads, tokens, capacity, row_count;

  __device__ __forceinline__ int row(int batch) const {
    return rows == nullptr ? batch : rows[batch];
  }
  /// Of a sequence's token in the row of a batch.
  __device__ __forceinline__ CacheSlot slot(int row, long long number) const {
    if (number < 0 || number >= capacity || row < 0 || row >= row_count) return {-1, 0};
    const unsigned in_row = static_cast<unsigned>(number);
    if (table == nullptr) return {row, static_cast<int>(in_row)};
    const unsigned size = page_size, page = in_row / size;
    const bool listed = page < static_cast<unsigned>(pages);
    const int found = listed ? table[row * table_row + page] : -1;
    return {found < page_limit ? found : -1, static_cast<int>(in_row - page * size)};
  }
  /// The offset of a head in an array with these strides, which has the slot.
  __device__ __forceinline__ static long long offset(const HeadStrides& strides, CacheSlot slot,
                                                     int head) {
    return slot.page * strides.batch + head * strides.head + slot.token * strides.token;
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
