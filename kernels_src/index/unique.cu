// Groups of equal elements in sorted order. Each NaN is a group alone, -0 and 0 are equal.
#include <kernwright/order.cuh>
#include <kernwright/ranks.cuh>

using namespace kernwright;

constexpr int kThreads = 256;
constexpr int kItems = 4;

/// Bit j tells whether element `at` + j begins a group.
template <typename Bits>
__device__ __forceinline__ unsigned group_bits(const Bits* sorted, Int64 at, Int64 end,
                                               const Order& order) {
  unsigned bits = 0;
  if (at >= end) return bits;
  Bits last = at > 0 ? order_key(sorted[at - 1], order) : Bits{};
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    if (at + j >= end) break;
    const Bits value = sorted[at + j];
    const Bits key = order_key(value, order);
    if (key != last || is_nan(value, order) || at + j == 0) bits |= 1u << j;
    last = key;
  }
  return bits;
}

/// counts[block] is the number of groups that begin in the block's chunk, a multiple of kThreads *
/// kItems elements.
template <typename Bits>
__global__ void count_groups(const Bits* __restrict__ sorted, Int64 size, Int64 chunk,
                             Int64* __restrict__ counts, const Order order) {
  const Int64 begin = blockIdx.x * chunk;
  const Int64 end = begin + chunk < size ? begin + chunk : size;
  Int64 count = 0;
  for (Int64 at = begin + threadIdx.x * kItems; at < end; at += kThreads * kItems) {
    count += __popc(group_bits(sorted, at, end, order));
  }
  count = block_total<kThreads>(count);
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

/// For each group the value, the begin, and the index of the first element; for each element the
/// number of its group. `origin` has the indices of the elements. Null outputs are not written.
template <typename Bits>
__global__ void write_groups(const Bits* __restrict__ sorted, const Int64* __restrict__ origin,
                             Int64 size, Int64 chunk, const Int64* __restrict__ counts,
                             Bits* __restrict__ values, Int64* __restrict__ starts,
                             Int64* __restrict__ firsts, Int64* __restrict__ inverse,
                             const Order order) {
  Int64 before = 0;
  for (int i = threadIdx.x; i < blockIdx.x; i += kThreads) before += counts[i];
  before = block_total<kThreads>(before);
  const Int64 begin = blockIdx.x * chunk;
  const Int64 end = begin + chunk < size ? begin + chunk : size;
  for (Int64 tile = begin; tile < end; tile += kThreads * kItems) {
    const Int64 at = tile + threadIdx.x * kItems;
    const unsigned bits = group_bits(sorted, at, end, order);
    unsigned total;
    Int64 group = before + block_sum_before<kThreads>(__popc(bits), total) - 1;
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if (at + j >= end) break;
      if (bits >> j & 1) {
        ++group;
        values[group] = sorted[at + j];
        if (starts != nullptr) starts[group] = at + j;
        if (firsts != nullptr) firsts[group] = origin[at + j];
      }
      if (inverse != nullptr) inverse[origin[at + j]] = group;
    }
    before += total;
  }
}

/// How many elements each group has.
__global__ void measure_groups(const Int64* __restrict__ starts, Int64* __restrict__ sizes,
                               Int64 groups, Int64 size) {
  const Int64 step = static_cast<Int64>(gridDim.x) * kThreads;
  for (Int64 i = static_cast<Int64>(blockIdx.x) * kThreads + threadIdx.x; i < groups; i += step) {
    sizes[i] = (i + 1 < groups ? starts[i + 1] : size) - starts[i];
  }
}
