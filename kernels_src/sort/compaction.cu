// Compaction: finds the set elements of a mask, in order. Each block counts a chunk; then the
// blocks write, each behind the elements of the blocks before it.
#include <kernwright/elements.cuh>
#include <kernwright/ranks.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// Elements are read as unsigned numbers of equal size. An element is set if one of `bits` is: all
/// bits but the sign of a floating number, as -0 is 0.
template <typename T>
__device__ __forceinline__ bool is_set(T x, UInt64 bits) {
  return (x & bits) != 0;
}
__device__ __forceinline__ bool is_set(Complex128 x, UInt64) { return is_nonzero(x); }

/// Bit j tells whether element `at` + j is set; N neighbours, a pack where all lie before `end`.
template <typename T, int N>
__device__ __forceinline__ unsigned set_bits(const T* mask, Int64 at, Int64 end, UInt64 bits) {
  unsigned set = 0;
  if (at + N <= end) {
    const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(mask + at);
#pragma unroll
    for (int j = 0; j < N; ++j) set |= static_cast<unsigned>(is_set(pack.value[j], bits)) << j;
    return set;
  }
#pragma unroll
  for (int j = 0; j < N; ++j) {
    if (at + j < end && is_set(mask[at + j], bits)) set |= 1u << j;
  }
  return set;
}

/// counts[block] is the count of the block's chunk, a multiple of kThreads * N elements.
template <typename T, int N>
__global__ void count_set(const T* __restrict__ mask, Int64 size, Int64 chunk,
                          Int64* __restrict__ counts, UInt64 bits) {
  const Int64 begin = blockIdx.x * chunk;
  const Int64 end = begin + chunk < size ? begin + chunk : size;
  Int64 count = 0;
#pragma unroll 4
  for (Int64 at = begin + threadIdx.x * N; at < end; at += kThreads * N) {
    count += __popc(set_bits<T, N>(mask, at, end, bits));
  }
  count = block_total<kThreads>(count);
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

/// Writes the places of the set elements to `places`, or the elements of `from` there to `to`:
/// whichever is not null.
template <typename T, int N, typename Unit>
__global__ void write_set(const T* __restrict__ mask, Int64 size, Int64 chunk,
                          const Int64* __restrict__ counts, Int64* __restrict__ places,
                          const Unit* __restrict__ from, Unit* __restrict__ to, UInt64 bits) {
  Int64 before = 0;
  for (int i = threadIdx.x; i < blockIdx.x; i += kThreads) before += counts[i];
  before = block_total<kThreads>(before);
  const Int64 begin = blockIdx.x * chunk;
  const Int64 end = begin + chunk < size ? begin + chunk : size;
  for (Int64 tile = begin; tile < end; tile += kThreads * N) {
    const Int64 at = tile + threadIdx.x * N;
    unsigned set = set_bits<T, N>(mask, at, end, bits);
    unsigned total;
    Int64 next = before + block_sum_before<kThreads>(__popc(set), total);
    for (; set != 0; set &= set - 1) {
      const Int64 place = at + __ffs(static_cast<int>(set)) - 1;
      if (places != nullptr) places[next] = place;
      if (to != nullptr) to[next] = from[place];
      ++next;
    }
    before += total;
  }
}

/// Copies the rows of `inner` units of `from` at the places, one behind another.
template <typename Unit>
__global__ void gather_rows(const Unit* __restrict__ from, const Int64* __restrict__ places,
                            Unit* __restrict__ to, Int64 units, Int64 inner) {
  const Int64 step = static_cast<Int64>(gridDim.x) * kThreads;
  for (Int64 i = static_cast<Int64>(blockIdx.x) * kThreads + threadIdx.x; i < units; i += step) {
    Int64 row;
    if (units <= 0x7fffffff) {
      row = static_cast<UInt32>(i) / static_cast<UInt32>(inner);
    } else {
      row = i / inner;
    }
    to[i] = from[places[row] * inner + (i - row * inner)];
  }
}

constexpr int kMostDims = 8;

struct SplitExtents {
  Int64 extent[kMostDims];  ///< the innermost first
  Int64 below;              ///< elements of one step of the innermost
  int ndim;
};

/// The coordinates of each place: number i along dimension d goes to to[i * item - d * dim].
__global__ void split_places(const Int64* __restrict__ places, Int64* __restrict__ to, Int64 count,
                             Int64 item, Int64 dim, const SplitExtents shape) {
  const Int64 step = static_cast<Int64>(gridDim.x) * kThreads;
  for (Int64 i = static_cast<Int64>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    Int64 rest = places[i] / shape.below;
#pragma unroll
    for (int d = 0; d < kMostDims; ++d) {
      if (d >= shape.ndim) break;
      const Int64 outer = rest / shape.extent[d];
      to[i * item - d * dim] = rest - outer * shape.extent[d];
      rest = outer;
    }
  }
}
