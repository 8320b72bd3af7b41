// Choices by weight with replacement, and rows gathered by index.
#include <kernwright/elements.cuh>
#include <kernwright/philox.cuh>

using namespace kernwright;

constexpr int kThreads = 1024;
constexpr int kEach = 8;

struct alignas(16) Unit16 {
  UInt64 low, high;
};

/// Running sum of a warp.
__device__ __forceinline__ double warp_scan(double value, int lane) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const double before = __shfl_up_sync(~0u, value, distance);
    if (lane >= distance) value += before;
  }
  return value;
}

/// Running sums of the weights; negative weights and NaN count as 0. One block.
__global__ void __launch_bounds__(kThreads) cumulate(double* out, const double* weight, UInt64 n) {
  __shared__ double warp_total[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  double before = 0;
  for (UInt64 first = 0; first < n; first += kThreads * kEach) {
    double value[kEach];
    double sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const UInt64 place = first + threadIdx.x * kEach + i;
      const double given = place < n ? weight[place] : 0;
      value[i] = sum += given > 0 ? given : 0;
    }
    const double within = warp_scan(sum, lane);
    const double earlier = __shfl_up_sync(~0u, within, 1);
    if (lane == 31) warp_total[warp] = within;
    __syncthreads();
    const double total = warp_scan(warp_total[lane], lane);
    const double earlier_warps = __shfl_sync(~0u, total, (warp + 31) % 32);
    const double start = before + (warp > 0 ? earlier_warps : 0) + (lane > 0 ? earlier : 0);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const UInt64 place = first + threadIdx.x * kEach + i;
      if (place < n) out[place] = start + value[i];
    }
    before += __shfl_sync(~0u, total, 31);
    __syncthreads();
  }
}

/// For each draw the first place whose running sum is above a random part of the whole.
template <typename Index>
__global__ void draw_weighted(Index* out, UInt64 count, const double* sums, UInt64 n, UInt64 seed,
                              UInt64 offset, const UInt64* counter) {
  if (counter != nullptr) offset += *counter;
  const double total = sums[n - 1];
  const UInt64 step = static_cast<UInt64>(gridDim.x) * blockDim.x;
  for (UInt64 i = static_cast<UInt64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const uint4 bits = Philox(seed, 0, offset + i).next4();
    double target = to_uniform_double(bits.x, bits.y) * total;
    if (target >= total && total > 0) {  // rounded up
      target = __longlong_as_double(__double_as_longlong(total) - 1);
    }
    UInt64 low = 0, high = n - 1;
    while (low < high) {
      const UInt64 middle = low + (high - low) / 2;
      if (sums[middle] > target) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    out[i] = static_cast<Index>(low);
  }
}

/// Row i of the result is row index[i], of `units` units.
template <typename Unit, typename Index>
__global__ void gather_rows(Unit* out, const Unit* in, const Index* index, UInt64 rows,
                            UInt64 units) {
  const UInt64 step = static_cast<UInt64>(gridDim.x) * blockDim.x, all = rows * units;
  for (UInt64 i = static_cast<UInt64>(blockIdx.x) * blockDim.x + threadIdx.x; i < all; i += step) {
    const UInt64 row = i / units;
    out[i] = in[static_cast<UInt64>(index[row]) * units + (i - row * units)];
  }
}
