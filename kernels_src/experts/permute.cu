// Sorts the pairs of token and expert by expert without changing their order (a counting sort),
// moves the tokens' rows there, and brings results back.
#include <kernwright/elements.cuh>
#include <kernwright/overlap.cuh>

using namespace kernwright;

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;

struct alignas(16) Unit16 {
  unsigned word[4];
};

/// Pairs are numbered token by token. Those whose expert is none of the experts go behind all.
struct Pairs {
  const int* experts;
  int count, kinds;  // kinds: experts and one more
  int each;          // of a block, a multiple of kThreads

  __device__ int kind(int pair) const {
    const int expert = experts[pair];
    return expert >= 0 && expert < kinds - 1 ? expert : kinds - 1;
  }
};

/// counts[warp * kinds + kind]: the pairs of each kind in a warp's part of the block's.
__device__ void count_warps(const Pairs& pairs, int* counts) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int i = threadIdx.x; i < kWarps * pairs.kinds; i += kThreads) counts[i] = 0;
  __syncthreads();
  const int part = pairs.each / kWarps, begin = blockIdx.x * pairs.each + warp * part;
  for (int base = begin; base < begin + part; base += 32) {
    const int pair = base + lane, kind = pair < pairs.count ? pairs.kind(pair) : -1;
    const unsigned same = __match_any_sync(~0u, kind);
    if (kind >= 0 && (same & ((1u << lane) - 1)) == 0) {
      counts[warp * pairs.kinds + kind] += __popc(same);
    }
    __syncwarp();
  }
  __syncthreads();
}

/// The numbers of a block's pairs by kind: counts[block * kinds + kind]. Count is int, here and in
/// place_pairs: compiles of other kernels of this text leave templates out.
template <typename Count>
__global__ void __launch_bounds__(kThreads)
    count_pairs(const Pairs pairs, Count* __restrict__ counts) {
  extern __shared__ int shared[];
  pdl_wait_then_launch();
  count_warps(pairs, shared);
  for (int kind = threadIdx.x; kind < pairs.kinds; kind += kThreads) {
    int sum = 0;
    for (int warp = 0; warp < kWarps; ++warp) sum += shared[warp * pairs.kinds + kind];
    counts[blockIdx.x * pairs.kinds + kind] = sum;
  }
}

/// Sums of `values` before each, in place, by a warp.
__device__ void sums_before(int* values, int count) {
  const int lane = threadIdx.x % 32;
  int before = 0;
  for (int base = 0; base < count; base += 32) {
    const int lane_value = base + lane < count ? values[base + lane] : 0;
    int upto = lane_value;
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
      const int other = __shfl_up_sync(~0u, upto, apart);
      if (lane >= apart) upto += other;
    }
    if (base + lane < count) values[base + lane] = before + upto - lane_value;
    before += __shfl_sync(~0u, upto, 31);
  }
}

/// Finds the position of each pair. counts: of all blocks; null for a single block. offsets: the
/// kinds' beginnings; positions: of each pair, -1 for pairs without an expert; sources: the pair at
/// each position, -1 likewise.
template <typename Count>
__global__ void __launch_bounds__(kThreads)
    place_pairs(const Pairs pairs, const Count* __restrict__ counts, int* __restrict__ offsets,
                int* __restrict__ positions, int* __restrict__ sources) {
  extern __shared__ int shared[];
  int* starts = shared + kWarps * pairs.kinds;  // of the kinds
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  pdl_wait_then_launch();
  count_warps(pairs, shared);
  for (int kind = threadIdx.x; kind < pairs.kinds; kind += kThreads) {
    int before = 0, all = 0;  // in blocks before this one
    if (counts != nullptr) {
#pragma unroll 4
      for (int block = 0; block < static_cast<int>(gridDim.x); ++block) {
        if (block == static_cast<int>(blockIdx.x)) before = all;
        all += counts[block * pairs.kinds + kind];
      }
    }
    for (int i = 0; i < kWarps; ++i) {
      const int lane_value = shared[i * pairs.kinds + kind];
      shared[i * pairs.kinds + kind] = before;
      before += lane_value;
    }
    starts[kind] = counts != nullptr ? all : before;
  }
  __syncthreads();
  if (warp == 0) sums_before(starts, pairs.kinds);
  __syncthreads();
  if (blockIdx.x == 0) {
    for (int kind = threadIdx.x; kind < pairs.kinds; kind += kThreads) offsets[kind] = starts[kind];
  }
  const int part = pairs.each / kWarps, begin = blockIdx.x * pairs.each + warp * part;
  int* next = shared + warp * pairs.kinds;
  for (int base = begin; base < begin + part; base += 32) {
    const int pair = base + lane, kind = pair < pairs.count ? pairs.kind(pair) : -1;
    const unsigned same = __match_any_sync(~0u, kind), lower = same & ((1u << lane) - 1);
    const int taken = kind >= 0 ? next[kind] : 0;
    __syncwarp();
    if (kind >= 0) {
      if (lower == 0) next[kind] = taken + __popc(same);
      const bool is_expert = kind < pairs.kinds - 1;
      const int position = starts[kind] + taken + __popc(lower);
      positions[pair] = is_expert ? position : -1;
      sources[position] = is_expert ? pair : -1;
    }
    __syncwarp();
  }
}

/// Each token's row to the places of its pairs; a block has a part of a row. Rows behind all
/// experts' are 0. Strides and counts in units.
template <typename Unit>
__global__ void __launch_bounds__(kThreads)
    spread_rows(const Unit* __restrict__ x, Unit* __restrict__ rows,
                const int* __restrict__ positions, const int* __restrict__ end, int pairs,
                int chosen, long long stride, int units) {
  pdl_wait_then_launch();
  const int token = blockIdx.x;
  const int step = static_cast<int>(gridDim.y) * kThreads;
  for (int i = blockIdx.y * kThreads + threadIdx.x; i < units; i += step) {
    const Unit value = x[token * stride + i];
#pragma unroll 4
    for (int k = 0; k < chosen; ++k) {
      const int position = positions[token * chosen + k];
      if (position >= 0) rows[static_cast<long long>(position) * units + i] = value;
    }
    for (int row = *end + token; row < pairs; row += gridDim.x) {
      rows[static_cast<long long>(row) * units + i] = Unit{};
    }
  }
}

/// out[token] = sum over k of weights[token, k] * rows[positions[token, k]], in float32 or float64
/// and in the order of k. Positions outside of `count` rows add nothing. kWidth elements a thread.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    gather_sums(const T* __restrict__ rows, const int* __restrict__ positions,
                const float* __restrict__ weights, T* __restrict__ out, int count, int chosen,
                long long stride, int columns) {
  pdl_wait_then_launch();
  const int token = blockIdx.x;
  const int step = static_cast<int>(gridDim.y) * kThreads * kWidth;
  for (int i = (blockIdx.y * kThreads + threadIdx.x) * kWidth; i < columns; i += step) {
    Compute<T> accumulators[kWidth] = {};
#pragma unroll 4
    for (int k = 0; k < chosen; ++k) {
      const int position = positions[token * chosen + k];
      if (position < 0 || position >= count) continue;
      const float weight = weights != nullptr ? weights[token * chosen + k] : 1.0f;
      const Pack<T, kWidth> lane_value =
          *reinterpret_cast<const Pack<T, kWidth>*>(rows + position * stride + i);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) accumulators[j] += weight * to_compute(lane_value.value[j]);
    }
    Pack<T, kWidth> result;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) result.value[j] = from_compute<T>(accumulators[j]);
    *reinterpret_cast<Pack<T, kWidth>*>(out + static_cast<long long>(token) * columns + i) = result;
  }
}
