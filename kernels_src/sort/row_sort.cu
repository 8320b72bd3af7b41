// Sorts rows that a block holds: many short ones at once by a network, one longer one by digits.
#include <kernwright/order.cuh>
#include <kernwright/ranks.cuh>

using namespace kernwright;

constexpr int kThreads = 256;
constexpr int kEntries = 1024;

/// Rows of `n` elements, padded to `segment` (a power of two, at most kEntries), `rows_at_once` of
/// them (rows_at_once * segment <= kEntries). The first `keep` of each row are written, with their
/// places in it: either pointer may be null.
template <typename Bits>
__global__ void sort_short_rows(const Bits* __restrict__ x, Bits* __restrict__ values,
                                Int64* __restrict__ indices, Int64 rows, int n, int keep,
                                int segment, int rows_at_once, Order order) {
  using Entries = EntryTraits<Bits>;
  using Entry = typename Entries::Type;
  __shared__ Entry entries[kEntries];
  const int log_segment = __ffs(segment) - 1;
  for (Int64 first = static_cast<Int64>(blockIdx.x) * rows_at_once; first < rows;
       first += static_cast<Int64>(gridDim.x) * rows_at_once) {
    const int here = static_cast<int>(rows - first < rows_at_once ? rows - first : rows_at_once);
    const int count = here << log_segment;
    for (int i = threadIdx.x; i < count; i += kThreads) {
      const int column = i & (segment - 1);
      const Int64 row = first + (i >> log_segment);
      // The padding sorts behind the row: no key is larger, no index as large.
      Bits key = static_cast<Bits>(~Bits(0));
      if (column < n) key = order_key(x[row * n + column], order);
      entries[i] = Entries::make(key, column);
    }
    sort_segments<kThreads>(entries, count, segment);
    for (int i = threadIdx.x; i < here * keep; i += kThreads) {
      const int row = i / keep;
      const int index =
          static_cast<int>(Entries::index(entries[(row << log_segment) + (i - row * keep)]));
      const Int64 to = (first + row) * keep + (i - row * keep);
      if (values != nullptr) values[to] = x[(first + row) * n + index];
      if (indices != nullptr) indices[to] = index;
    }
    __syncthreads();
  }
}

/// One row of at most Items * 256 elements a block; 256 threads. Digits of 8 bits, lowest first.
template <typename Bits, int Items>
__global__ void __launch_bounds__(kDigits, sizeof(Bits) == 8 ? 2 : 3)
    sort_long_rows(const Bits* __restrict__ x, Bits* __restrict__ values,
                   Int64* __restrict__ indices, Int64 rows, int n, Order order) {
  __shared__ union {
    Bits key[Items * kDigits];
    unsigned short index[Items * kDigits];
  } exchange;
  __shared__ DigitRanks ranks;
  const int lane = threadIdx.x % 32;
  const int begin = threadIdx.x / 32 * 32 * Items + lane;
  for (Int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const Bits* const from = x + row * n;
    const int left = n - begin;
    Bits key[Items];
    unsigned short index[Items];
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      index[i] = static_cast<unsigned short>(begin + 32 * i);
      key[i] = 32 * i < left ? order_key(from[begin + 32 * i], order) : ~Bits(0);
    }
#pragma unroll 1
    for (int shift = 0; shift < 8 * static_cast<int>(sizeof(Bits)); shift += 8) {
      unsigned rank[Items];
      rank_digits(ranks, key, shift, rank);
#pragma unroll
      for (int i = 0; i < Items; ++i) exchange.key[rank[i]] = key[i];
      __syncthreads();
#pragma unroll
      for (int i = 0; i < Items; ++i) key[i] = exchange.key[begin + 32 * i];
      __syncthreads();
#pragma unroll
      for (int i = 0; i < Items; ++i) exchange.index[rank[i]] = index[i];
      __syncthreads();
#pragma unroll
      for (int i = 0; i < Items; ++i) index[i] = exchange.index[begin + 32 * i];
    }
    if (values != nullptr) {
      Bits* const to = values + row * n + begin;
#pragma unroll
      for (int i = 0; i < Items; ++i) {
        if (32 * i < left) to[32 * i] = from[index[i]];
      }
    }
    if (indices != nullptr) {
      Int64* const to = indices + row * n + begin;
#pragma unroll
      for (int i = 0; i < Items; ++i) {
        if (32 * i < left) to[32 * i] = index[i];
      }
    }
  }
}
