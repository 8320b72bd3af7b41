// Totals of all numbers before each one, tile by tile.

constexpr int kThreads = 256;
constexpr int kEach = 8;
constexpr int kTile = kThreads * kEach;

/// The sum of the values of the threads before this one, of a block of kThreads.
__device__ __forceinline__ long long before_in_block(long long value) {
  __shared__ long long warp_sums[kThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  long long sum = value;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const long long other = __shfl_up_sync(~0u, sum, d);
    if (lane >= d) sum += other;
  }
  __syncthreads();  // an earlier call may still be read
  if (lane == 31) warp_sums[warp] = sum;
  __syncthreads();
  long long before = sum - value;
  for (int w = 0; w < warp; ++w) before += warp_sums[w];
  return before;
}

/// `out` may be `in`. Block b scans tile b and writes the sum of the tile.
__global__ void total_tiles(const long long* in, long long* out, long long* __restrict__ sums,
                            long long count) {
  const long long first = blockIdx.x * static_cast<long long>(kTile) + threadIdx.x * kEach;
  long long value[kEach], sum = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    value[k] = first + k < count ? in[first + k] : 0;
    sum += value[k];
  }
  long long before = before_in_block(sum);
  if (threadIdx.x == kThreads - 1) sums[blockIdx.x] = before + sum;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    if (first + k < count) out[first + k] = before;
    before += value[k];
  }
}

/// Adds to the elements of tile b what all tiles before it sum to.
__global__ void add_bases(long long* __restrict__ out, const long long* __restrict__ bases,
                          long long count) {
  const long long first = blockIdx.x * static_cast<long long>(kTile) + threadIdx.x;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const long long i = first + k * kThreads;
    if (i < count) out[i] += bases[blockIdx.x];
  }
}
