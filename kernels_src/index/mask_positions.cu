// Positions of true elements in a mask; writes at them; positions repeated by counts.
#include <kernwright/elements.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

struct alignas(16) Unit16 {
  unsigned long long low, high;
};

constexpr int kThreads = 256;
constexpr int kEach = 16;
constexpr int kTile = kThreads * kEach;

__device__ __forceinline__ int before_in_block(int value, int* total) {
  __shared__ int warp_sums[kThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int sum = value;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const int other = __shfl_up_sync(~0u, sum, d);
    if (lane >= d) sum += other;
  }
  if (lane == 31) warp_sums[warp] = sum;
  __syncthreads();
  int before = sum - value;
  *total = 0;
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w < warp) before += warp_sums[w];
    *total += warp_sums[w];
  }
  return before;
}

/// The thread's kEach neighbours of the mask as bits: by one load where the mask is aligned.
__device__ __forceinline__ unsigned mask_bits(const unsigned char* mask, long long first,
                                              long long count) {
  unsigned bits = 0;
  if (first + kEach <= count && (reinterpret_cast<unsigned long long>(mask) & 15) == 0) {
    const Pack<UInt8, kEach> pack = *reinterpret_cast<const Pack<UInt8, kEach>*>(mask + first);
#pragma unroll
    for (int k = 0; k < kEach; ++k) bits |= (pack.value[k] != 0 ? 1u : 0u) << k;
  } else {
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      bits |= (first + k < count && mask[first + k] != 0 ? 1u : 0u) << k;
    }
  }
  return bits;
}

/// How many of tile b are true.
__global__ void count_true(const unsigned char* __restrict__ mask, long long* __restrict__ counts,
                           long long count) {
  const long long first = blockIdx.x * static_cast<long long>(kTile) + threadIdx.x * kEach;
  int total;
  before_in_block(__popc(mask_bits(mask, first, count)), &total);
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

/// The positions of tile b go from bases[b] on.
__global__ void write_true(const unsigned char* __restrict__ mask,
                           const long long* __restrict__ bases, long long* __restrict__ positions,
                           long long count) {
  const long long first = blockIdx.x * static_cast<long long>(kTile) + threadIdx.x * kEach;
  unsigned bits = mask_bits(mask, first, count);
  int total;
  long long at = bases[blockIdx.x] + before_in_block(__popc(bits), &total);
  for (; bits != 0; bits &= bits - 1) positions[at++] = first + __ffs(bits) - 1;
}

/// Writes a value wherever the mask is true.
template <typename Unit, typename Index>
__global__ void write_where(char* __restrict__ to, const char* __restrict__ value,
                            const char* __restrict__ mask, const Walk<3> view, Index count) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const WalkOffsets<3> at = walk_offsets(view, i);
    if (mask[at.offset[2]] != 0) {
      *reinterpret_cast<Unit*>(to + at.offset[0]) =
          *reinterpret_cast<const Unit*>(value + at.offset[1]);
    }
  }
}

/// out[m] is the last i whose elements begin at m or before: i stands counts[i] times.
__global__ void repeat_positions(const long long* __restrict__ begins, long long* __restrict__ out,
                                 long long items, long long count) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long m = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; m < count;
       m += step) {
    long long low = 0, high = items;  // begins[low] <= m, and begins[high] > m
    while (high - low > 1) {
      const long long middle = low + (high - low) / 2;
      if (begins[middle] <= m) {
        low = middle;
      } else {
        high = middle;
      }
    }
    out[m] = low;
  }
}
