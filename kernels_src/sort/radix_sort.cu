// Sorts rows of any length, several blocks a row: one pass of three kernels for each digit of 8
// bits. A block takes `chunk` elements of a row, a multiple of a tile of Items * 256.
#include <kernwright/order.cuh>
#include <kernwright/ranks.cuh>

using namespace kernwright;

/// Where a block works: row, chunk of it, and its elements.
struct Part {
  Int64 row, begin, end;
  int chunk;
  __device__ Part(Int64 n, Int64 chunk_size, int chunks) {
    row = blockIdx.x / chunks;
    chunk = static_cast<int>(blockIdx.x - row * chunks);
    begin = chunk * chunk_size;
    end = begin + chunk_size < n ? begin + chunk_size : n;
  }
};

template <typename Bits>
__device__ __forceinline__ unsigned digit_of(Bits x, int shift, const Order& order) {
  return static_cast<unsigned>(order_key(x, order) >> shift) & (kDigits - 1);
}

/// counts[row][digit][chunk]
template <typename Bits, int Items>
__global__ void count_digits(const Bits* __restrict__ x, Int64* __restrict__ counts, Int64 n,
                             Int64 chunk_size, int chunks, int shift, const Order order) {
  __shared__ unsigned count[kDigits];
  const Part part(n, chunk_size, chunks);
  const Bits* const from = x + part.row * n;
  count[threadIdx.x] = 0;
  __syncthreads();
  for (Int64 tile = part.begin; tile < part.end; tile += Items * kDigits) {
    Bits value[Items];
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const Int64 at = tile + i * kDigits + threadIdx.x;
      if (at < part.end) value[i] = from[at];
    }
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const Int64 at = tile + i * kDigits + threadIdx.x;
      if (at < part.end) atomicAdd(&count[digit_of(value[i], shift, order)], 1u);
    }
  }
  __syncthreads();
  counts[(part.row * kDigits + threadIdx.x) * chunks + part.chunk] = count[threadIdx.x];
}

/// Each count becomes the sum of those of its row and digit before it; `totals` gets the sum of
/// all. One warp for each of the `lines` pairs of row and digit.
__global__ void sum_digits(Int64* __restrict__ counts, Int64* __restrict__ totals, Int64 lines,
                           int chunks) {
  const int lane = threadIdx.x % 32;
  const Int64 line = (static_cast<Int64>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (line >= lines) return;
  Int64* const mine = counts + line * chunks;
  Int64 before = 0;
  for (int i = lane; i - lane < chunks; i += 32) {
    const Int64 value = i < chunks ? mine[i] : 0;
    Int64 through = value;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const Int64 other = __shfl_up_sync(~0u, through, step);
      if (lane >= step) through += other;
    }
    if (i < chunks) mine[i] = before + through - value;
    before += __shfl_sync(~0u, through, 31);
  }
  if (lane == 0) totals[line] = before;
}

/// Where the next element of digit threadIdx.x of this block goes.
__device__ __forceinline__ Int64 first_place(const Int64* counts, const Int64* totals,
                                             const Part& part, int chunks) {
  __shared__ Int64 total[kDigits];
  total[threadIdx.x] = totals[part.row * kDigits + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int step = 1; step < kDigits; step *= 2) {
    const Int64 other = static_cast<int>(threadIdx.x) >= step ? total[threadIdx.x - step] : 0;
    __syncthreads();
    total[threadIdx.x] += other;
    __syncthreads();
  }
  const Int64 before = threadIdx.x > 0 ? total[threadIdx.x - 1] : 0;
  return before + counts[(part.row * kDigits + threadIdx.x) * chunks + part.chunk];
}

/// Moves elements, and `Index` numbers with them unless `HasIndex` is false, to their places by one
/// digit. Without `from_index` the numbers are the places in the row. Numbers go to `to_index`, or
/// as 64 bits to `indices`; `to` may be null.
template <typename Bits, int Items, bool HasIndex, typename Index>
__global__ void __launch_bounds__(kDigits, sizeof(Bits) == 8 ? 2 : 3)
    move_digits(const Bits* __restrict__ from, Bits* __restrict__ to,
                const Index* __restrict__ from_index, Index* __restrict__ to_index,
                Int64* __restrict__ indices, const Int64* __restrict__ counts,
                const Int64* __restrict__ totals, Int64 n, Int64 chunk_size, int chunks, int shift,
                const Order order) {
  __shared__ union {
    Bits value[Items * kDigits];
    Index index[Items * kDigits];
  } exchange;
  __shared__ DigitRanks ranks;
  __shared__ Int64 place[kDigits];  // of a digit, less its first place in the tile
  const Part part(n, chunk_size, chunks);
  const Int64 row = part.row * n;
  Int64 next = first_place(counts, totals, part, chunks);
  const int begin = threadIdx.x / 32 * 32 * Items + threadIdx.x % 32;
  for (Int64 tile = part.begin; tile < part.end; tile += Items * kDigits) {
    const int valid =
        static_cast<int>(part.end - tile < Items * kDigits ? part.end - tile : Items * kDigits);
    Bits value[Items];
    unsigned digit[Items], rank[Items];
    const Bits* const mine = from + row + tile + begin;
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      if (begin + 32 * i < valid) value[i] = mine[32 * i];
    }
    // Behind the end: ranked behind all elements, and never written.
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      digit[i] = begin + 32 * i < valid ? digit_of(value[i], shift, order) : kDigits - 1;
    }
    const unsigned count = rank_digits<Items>(ranks, digit, rank);
    place[threadIdx.x] = row + next - ranks.start[threadIdx.x];
    next += count;
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      if (begin + 32 * i < valid) exchange.value[rank[i]] = value[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int slot = i * kDigits + threadIdx.x;
      if (slot >= valid) continue;
      const Bits moved = exchange.value[slot];
      digit[i] = digit_of(moved, shift, order);
      if (to != nullptr) to[place[digit[i]] + slot] = moved;
    }
    __syncthreads();
    if constexpr (HasIndex) {
#pragma unroll
      for (int i = 0; i < Items; ++i) {
        if (begin + 32 * i >= valid) continue;
        const Int64 at = tile + begin + 32 * i;
        exchange.index[rank[i]] =
            from_index != nullptr ? from_index[row + at] : static_cast<Index>(at);
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < Items; ++i) {
        const int slot = i * kDigits + threadIdx.x;
        if (slot >= valid) continue;
        const Int64 target = place[digit[i]] + slot;
        if (to_index != nullptr) to_index[target] = exchange.index[slot];
        if (indices != nullptr) indices[target] = static_cast<Int64>(exchange.index[slot]);
      }
      __syncthreads();
    }
  }
}
