// The first k elements of rows in sorted order. A block selects the first of 4096 elements by
// digits of 11 bits. Another block selects from the finds of the row's blocks, and sorts them.
#include <kernwright/order.cuh>
#include <kernwright/ranks.cuh>

using namespace kernwright;

constexpr int kThreads = 256;
constexpr int kItems = 16;
constexpr int kTile = kThreads * kItems;
constexpr int kBins = 2048;
constexpr int kMost = 1024;  // the largest k

struct Selection {
  unsigned count[kBins];
  unsigned bin, taken, in_bin;  // the bin in which the last one lies, how many are below and in it
  unsigned found;
};

/// Finds the bin of element number `wanted` (from 1) in the order of the bins.
__device__ __forceinline__ void find_bin(Selection& shared, unsigned wanted) {
  constexpr int kEach = kBins / kThreads;
  unsigned mine[kEach], sum = 0, total;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    mine[i] = shared.count[threadIdx.x * kEach + i];
    sum += mine[i];
  }
  unsigned before = block_sum_before<kThreads>(sum, total);
  if (before < wanted && wanted <= before + sum) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (before < wanted && wanted <= before + mine[i]) {
        shared.bin = threadIdx.x * kEach + i;
        shared.taken = before;
        shared.in_bin = mine[i];
      }
      before += mine[i];
    }
  }
  __syncthreads();
}

/// Bits `shift` to `shift + 10` of the key, or of the index where shift is below 0: then up from
/// `shift + 44` of it.
template <typename Bits>
__device__ __forceinline__ unsigned bin_of(Bits key, UInt32 index, int shift) {
  if (shift >= 0) return static_cast<unsigned>(key >> shift) & (kBins - 1);
  return index >> (shift + 44) & (kBins - 1);
}

/// Marks the k first of the elements in `live`, a bit for each item: by key, then by index of
/// `index_bits` bits. The result is each thread's bits.
template <typename Bits>
__device__ __forceinline__ unsigned select_first(Selection& shared, const Bits (&key)[kItems],
                                                 const UInt32 (&index)[kItems], unsigned live,
                                                 unsigned k, int index_bits) {
  unsigned chosen = 0;
  constexpr int kBits = 8 * static_cast<int>(sizeof(Bits));
  int shift = kBits > 11 ? kBits - 11 : 0;
  for (;;) {
    for (int i = threadIdx.x; i < kBins; i += kThreads) shared.count[i] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (live >> i & 1) atomicAdd(&shared.count[bin_of(key[i], index[i], shift)], 1u);
    }
    __syncthreads();
    find_bin(shared, k);
    const unsigned bin = shared.bin;
    k -= shared.taken;
    const bool all = shared.in_bin == k;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const unsigned mine = bin_of(key[i], index[i], shift);
      if (!(live >> i & 1)) continue;
      if (mine < bin || (all && mine == bin)) chosen |= 1u << i;
      if (mine != bin) live &= ~(1u << i);
    }
    __syncthreads();
    if (all) return chosen;
    // The lowest digit of the key may repeat bits of the one before. No two indices are equal, so
    // that this ends with the lowest digit of them.
    if (shift > 0) {
      shift = shift > 11 ? shift - 11 : 0;
    } else {
      shift = shift == 0 ? (index_bits - 1) / 11 * 11 - 44 : shift - 11;
    }
  }
}

/// Block `tile` of a row (of `tiles`) takes elements tile * kTile ... of its `count` candidates:
/// the row itself where `candidates` is null, else places in it. It writes the `keep` first of them
/// (fewer in the last block, if it has fewer), in no order, to `found`, `found_count` for a row;
/// where `tiles` is 1, in order and with their values. `keep` is at most kMost.
template <typename Bits>
__global__ void topk_tiles(const Bits* __restrict__ x, const UInt32* __restrict__ candidates,
                           UInt32* __restrict__ found, Bits* __restrict__ values,
                           Int64* __restrict__ indices, Int64 n, Int64 count, Int64 found_count,
                           int tiles, int keep, int segment, int index_bits, Order order) {
  using Entries = EntryOf<Bits>;
  using Entry = typename Entries::Type;
  __shared__ Selection shared;
  __shared__ Entry entries[kMost];
  const Int64 row = blockIdx.x / tiles;
  const int tile = static_cast<int>(blockIdx.x - row * tiles);
  const Int64 begin = static_cast<Int64>(tile) * kTile;
  const Bits* const from = x + row * n;
  Bits key[kItems];
  UInt32 index[kItems];
  unsigned live = 0;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const Int64 at = begin + i * kThreads + threadIdx.x;
    key[i] = 0;
    index[i] = 0;
    if (at >= count) continue;
    live |= 1u << i;
    index[i] = candidates != nullptr ? candidates[row * count + at] : static_cast<UInt32>(at);
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (live >> i & 1) key[i] = order_key(from[index[i]], order);
  }
  const Int64 left = count - begin < kTile ? count - begin : kTile;
  const unsigned here = static_cast<unsigned>(left < keep ? left : keep);
  unsigned chosen = live;
  if (here < left) chosen = select_first(shared, key, index, live, here, index_bits);
  if (threadIdx.x == 0) shared.found = 0;
  for (int i = threadIdx.x; i < segment; i += kThreads) {
    entries[i] = Entries::make(static_cast<Bits>(~Bits(0)), ~0u);
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (!(chosen >> i & 1)) continue;
    const unsigned slot = atomicAdd(&shared.found, 1u);
    if (tiles > 1) {
      found[row * found_count + static_cast<Int64>(tile) * keep + slot] = index[i];
    } else {
      entries[slot] = Entries::make(key[i], index[i]);
    }
  }
  if (tiles > 1) return;
  sort_segments<kThreads>(entries, segment, segment);
  for (int i = threadIdx.x; i < keep; i += kThreads) {
    const UInt32 at = Entries::index(entries[i]);
    values[row * keep + i] = from[at];
    indices[row * keep + i] = at;
  }
}
