// The gradient of an embedding's table, with equal bits in every run: positions are sorted by the
// table's rows, stably, eight bits at a time; then one block adds up the gradients of a row in
// order.
#include <kernwright/edge_packs.cuh>
#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>

using namespace kernwright;

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kDigits = 256;
constexpr int kTile = 2048;  // places that a block sorts
constexpr int kLanes = 32, kWays = 8;

/// Keys are rows of the table; `vocabulary` for places that give no gradient.
template <typename Id>
__global__ void __launch_bounds__(kThreads)
    make_keys(const Id* __restrict__ ids, unsigned* __restrict__ keys,
              unsigned* __restrict__ places, unsigned count, long long vocabulary,
              long long padding) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const long long id = static_cast<long long>(ids[i]);
  const bool counts = id >= 0 && id < vocabulary && id != padding;
  keys[i] = static_cast<unsigned>(counts ? id : vocabulary);
  places[i] = i;
}

/// counts[digit * blocks + block]: how many keys of a tile have a digit.
__global__ void __launch_bounds__(kThreads)
    count_digits(const unsigned* __restrict__ keys, unsigned* __restrict__ counts, unsigned count,
                 int shift) {
  __shared__ unsigned found[kDigits];
  found[threadIdx.x] = 0;
  __syncthreads();
  const unsigned begin = blockIdx.x * kTile;
#pragma unroll
  for (int k = 0; k < kTile / kThreads; ++k) {
    const unsigned i = begin + k * kThreads + threadIdx.x;
    if (i < count) atomicAdd(&found[keys[i] >> shift & (kDigits - 1)], 1u);
  }
  __syncthreads();
  counts[threadIdx.x * gridDim.x + blockIdx.x] = found[threadIdx.x];
}

/// Every count becomes the sum of the counts before; one block.
__global__ void __launch_bounds__(1024) scan_counts(unsigned* __restrict__ counts, unsigned count) {
  __shared__ unsigned sums[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned before = 0;
  for (unsigned begin = 0; begin < count; begin += 1024) {
    const unsigned i = begin + threadIdx.x;
    const unsigned lane_count = i < count ? counts[i] : 0;
    unsigned sum = lane_count;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const unsigned other = __shfl_up_sync(~0u, sum, step);
      if (lane >= step) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    unsigned warps = sums[lane];
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const unsigned other = __shfl_up_sync(~0u, warps, step);
      if (lane >= step) warps += other;
    }
    const unsigned earlier = __shfl_sync(~0u, warps, warp == 0 ? 0 : warp - 1);
    if (i < count) counts[i] = before + (warp == 0 ? 0 : earlier) + sum - lane_count;
    before += __shfl_sync(~0u, warps, 31);
    __syncthreads();
  }
}

/// Moves keys and positions to the offsets of the counts; equal digits stay in order.
__global__ void __launch_bounds__(kThreads)
    scatter_digits(const unsigned* __restrict__ keys, const unsigned* __restrict__ places,
                   unsigned* __restrict__ sorted_keys, unsigned* __restrict__ sorted_places,
                   const unsigned* __restrict__ counts, unsigned count, int shift) {
  __shared__ unsigned next[kDigits];
  __shared__ unsigned warp_counts[kWarps][kDigits];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  next[threadIdx.x] = counts[threadIdx.x * gridDim.x + blockIdx.x];
  const unsigned begin = blockIdx.x * kTile;
  for (int k = 0; k < kTile / kThreads; ++k) {
#pragma unroll
    for (int w = 0; w < kWarps; ++w) warp_counts[w][threadIdx.x] = 0;
    __syncthreads();
    const unsigned i = begin + k * kThreads + threadIdx.x;
    const unsigned key = i < count ? keys[i] : 0;
    // Lanes behind the end have a digit that no key has.
    const unsigned digit = i < count ? key >> shift & (kDigits - 1) : kDigits;
    const unsigned same = __match_any_sync(~0u, digit);
    const unsigned rank = __popc(same & ((1u << lane) - 1));
    if (rank == 0 && digit < kDigits) warp_counts[warp][digit] = __popc(same);
    __syncthreads();
    unsigned at = next[threadIdx.x];
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const unsigned found = warp_counts[w][threadIdx.x];
      warp_counts[w][threadIdx.x] = at;
      at += found;
    }
    next[threadIdx.x] = at;
    __syncthreads();
    if (i < count) {
      const unsigned to = warp_counts[warp][digit] + rank;
      sorted_keys[to] = key;
      sorted_places[to] = places[i];
    }
    __syncthreads();
  }
}

/// Block (x, y) has the columns of tile y, and the row of the table whose keys begin at x; blocks
/// without a first key leave at once. Rows without keys are not touched.
template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    sum_rows(const T* __restrict__ dy, const unsigned* __restrict__ keys,
             const unsigned* __restrict__ places, T* __restrict__ dtable, unsigned count,
             unsigned vocabulary, long long cols, Compute<T> scale) {
  const unsigned begin = blockIdx.x, key = keys[begin];
  if (key == vocabulary || (begin > 0 && keys[begin - 1] == key)) return;
  unsigned low = begin + 1, high = count;  // the end of the keys is in [low, high]
  while (low < high) {
    const unsigned middle = low + (high - low) / 2;
    if (keys[middle] == key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const int lane = threadIdx.x % kLanes, way = threadIdx.x / kLanes;
  const long long col = (static_cast<long long>(blockIdx.y) * kLanes + lane) * N;
  Compute<T> sum[N] = {};
#pragma unroll 4
  for (unsigned i = begin + way; i < low; i += kWays) {
    Pack<T, N> pack;
    load_pack<N>(dy + places[i] * cols, col, cols, pack);
#pragma unroll
    for (int j = 0; j < N; ++j) sum[j] += to_compute(pack.value[j]);
  }
  __shared__ Compute<T> shared[kWays][kLanes * N];
#pragma unroll
  for (int j = 0; j < N; ++j) shared[way][j * kLanes + lane] = sum[j];
  __syncthreads();
  if (way != 0) return;
  Pack<T, N> pack;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    Compute<T> all = 0;
#pragma unroll
    for (int w = 0; w < kWays; ++w) all += shared[w][j * kLanes + lane];
    pack.value[j] = from_compute<T>(all * scale);
  }
  store_pack<N>(dtable + key * cols, col, cols, pack);
}
