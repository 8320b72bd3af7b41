// Random orders of whole numbers, and the sort of pairs behind weighted ones.
#include <kernwright/elements.cuh>
#include <kernwright/philox.cuh>

using namespace kernwright;

constexpr int kThreads = 1024;
constexpr int kTile = 2 * kThreads;  // pairs that a block sorts in shared memory
constexpr int kRounds = 8;

__device__ __forceinline__ uint4 bits_at(UInt64 seed, UInt64 block) {
  return Philox(seed, 0, block).next4();
}

// ---- few: sorted by random keys, so that every order has the same chance

/// A key and what it belongs to. Equal keys follow by index.
struct Pair {
  UInt64 key, index;
};

__device__ __forceinline__ bool before(const Pair& a, const Pair& b) {
  return a.key < b.key || (a.key == b.key && a.index < b.index);
}

/// One step of a bitonic network (K. Batcher, 1968) between places i and i + stride.
__device__ __forceinline__ void order(Pair& low, Pair& high, bool ascending) {
  if (before(high, low) == ascending) {
    const Pair swap = low;
    low = high;
    high = swap;
  }
}

/// Steps of `size` from `stride` down to 1 over the tile whose first pair is number `first`.
__device__ __forceinline__ void merge(Pair* tile, UInt64 first, UInt64 size, int stride) {
  for (; stride > 0; stride /= 2) {
    __syncthreads();
    const int i = threadIdx.x / stride * 2 * stride + threadIdx.x % stride;
    order(tile[i], tile[i + stride], ((first + i) & size) == 0);
  }
}

__device__ __forceinline__ void sort_tile(Pair* tile, UInt64 first) {
  for (int size = 2; size <= kTile; size *= 2) merge(tile, first, size, size / 2);
  __syncthreads();
}

/// The first `count` of the numbers below n (at most kTile) in random order. One block.
template <typename Index>
__global__ void __launch_bounds__(kThreads)
    permute_few(Index* out, UInt64 count, UInt64 n, UInt64 seed, UInt64 offset,
                const UInt64* counter) {
  __shared__ Pair tile[kTile];
  if (counter != nullptr) offset += *counter;
  const uint4 bits = bits_at(seed, offset + threadIdx.x);
  const UInt64 keys[2] = {static_cast<UInt64>(bits.x) << 32 | bits.y,
                          static_cast<UInt64>(bits.z) << 32 | bits.w};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const UInt64 place = 2 * threadIdx.x + i;
    tile[place] = place < n ? Pair{keys[i], place} : Pair{~0ULL, place};
  }
  sort_tile(tile, 0);
  for (int i = threadIdx.x; i < count; i += kThreads) out[i] = static_cast<Index>(tile[i].index);
}

// ---- many: a bijection, computed for each place alone

/// Exchanges of two halves (H. Feistel), each mixed with a function of the other. A number that
/// falls outside is sent through again, so the numbers below n stay among themselves (J. Black and
/// P. Rogaway, 2002; on GPUs R. Mitchell et al., "Bandwidth-optimal random shuffling", 2021).
struct Bijection {
  unsigned key[kRounds];
  int left, right;  // bits

  __device__ static unsigned mix(unsigned x, unsigned key) {
    x = (x ^ key) * 0x85EBCA6Bu;
    x = (x ^ x >> 15) * 0xC2B2AE35u;
    x = (x ^ x >> 13) * 0x9E3779B1u;
    return x ^ x >> 16;
  }
  __device__ UInt64 once(UInt64 x) const {
    unsigned high = static_cast<unsigned>(x >> right);
    unsigned low = static_cast<unsigned>(x & ((1ULL << right) - 1));
#pragma unroll
    for (int round = 0; round < kRounds; round += 2) {
      high ^= mix(low, key[round]) >> (32 - left);
      low ^= mix(high, key[round + 1]) >> (32 - right);
    }
    return static_cast<UInt64>(high) << right | low;
  }
  __device__ UInt64 below(UInt64 n, UInt64 x) const {
    do x = once(x);
    while (x >= n);
    return x;
  }
};

/// A permutation of any n: 2^bits is at least n, and bits at least 2.
template <typename Index>
__global__ void permute_many(Index* out, UInt64 count, UInt64 n, int bits, UInt64 seed,
                             UInt64 offset, const UInt64* counter) {
  if (counter != nullptr) offset += *counter;
  const uint4 one = bits_at(seed, offset), two = bits_at(seed, offset + 1);
  const Bijection bijection = {{one.x, one.y, one.z, one.w, two.x, two.y, two.z, two.w},
                               bits / 2,
                               bits - bits / 2};
  const UInt64 step = static_cast<UInt64>(gridDim.x) * blockDim.x;
  for (UInt64 i = static_cast<UInt64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    out[i] = static_cast<Index>(bijection.below(n, i));
  }
}

// ---- weighted: the order in which weights arrive first

/// Pairs whose keys are exponential of rate `weight`: their order is a draw without replacement (P.
/// Efraimidis and P. Spirakis, 2006). Pairs of weight 0 come last, then the padding.
__global__ void weighted_keys(Pair* out, UInt64 padded, const double* weight, UInt64 n, UInt64 seed,
                              UInt64 offset, const UInt64* counter) {
  if (counter != nullptr) offset += *counter;
  const UInt64 i = static_cast<UInt64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= padded) return;
  Pair pair = {~0ULL, i};
  if (i < n) {
    const uint4 bits = bits_at(seed, offset + i);
    const double arrival = -log(1.0 - to_uniform_double(bits.x, bits.y));
    const double rate = weight[i];
    const double key = rate > 0 ? arrival / rate : 1.0 / 0.0;
    pair.key = static_cast<UInt64>(__double_as_longlong(key));  // in order: none is negative
  }
  out[i] = pair;
}

__global__ void __launch_bounds__(kThreads) sort_tiles(Pair* pairs) {
  __shared__ Pair tile[kTile];
  const UInt64 first = static_cast<UInt64>(blockIdx.x) * kTile;
  for (int i = threadIdx.x; i < kTile; i += kThreads) tile[i] = pairs[first + i];
  sort_tile(tile, first);
  for (int i = threadIdx.x; i < kTile; i += kThreads) pairs[first + i] = tile[i];
}

/// Steps of `size` within tiles.
__global__ void __launch_bounds__(kThreads) merge_tiles(Pair* pairs, UInt64 size) {
  __shared__ Pair tile[kTile];
  const UInt64 first = static_cast<UInt64>(blockIdx.x) * kTile;
  for (int i = threadIdx.x; i < kTile; i += kThreads) tile[i] = pairs[first + i];
  merge(tile, first, size, kThreads);
  __syncthreads();
  for (int i = threadIdx.x; i < kTile; i += kThreads) pairs[first + i] = tile[i];
}

/// One step between tiles; a thread for two pairs.
__global__ void merge_far(Pair* pairs, UInt64 size, UInt64 stride) {
  const UInt64 thread = static_cast<UInt64>(blockIdx.x) * blockDim.x + threadIdx.x;
  const UInt64 i = thread / stride * 2 * stride + thread % stride;
  order(pairs[i], pairs[i + stride], (i & size) == 0);
}

template <typename Index>
__global__ void take_indices(Index* out, const Pair* pairs, UInt64 count) {
  const UInt64 i = static_cast<UInt64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = static_cast<Index>(pairs[i].index);
}
