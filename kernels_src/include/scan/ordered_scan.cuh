// Scans by any associative operation, in three kernels: of tiles' totals, of the totals, of tiles.
// The order of combination is fixed, and operands keep their sides.
#pragma once

#include <kernwright/fused.cuh>
#include <kernwright/reduce.cuh>

namespace kernwright {

constexpr int kScanThreads = 256;
constexpr int kScanItems = 8;
constexpr int kScanTile = kScanThreads * kScanItems;

/// The combined values of all threads before; `total` has all threads' values. Every thread must
/// call it.
template <typename T, typename Combine>
__device__ __forceinline__ T before_in_block(T value, Combine combine, T none, T& total) {
  constexpr int kWarps = kScanThreads / 32;
  __shared__ alignas(16) unsigned char memory[kWarps * sizeof(T)];
  T* const warp_total = reinterpret_cast<T*>(memory);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    const T other = shuffle_up(value, lanes);
    if (lane >= lanes) value = combine(other, value);
  }
  __syncthreads();  // an earlier call may still be read
  if (lane == 31) warp_total[warp] = value;
  __syncthreads();
  T before = none;
  total = none;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) before = total;
    total = combine(total, warp_total[w]);
  }
  const T within = shuffle_up(value, 1);
  return lane == 0 ? before : combine(before, within);
}

/// An element in the form for combining: itself, or with a mark for a real one.
template <typename T>
struct Lifted {
  template <typename From>
  __device__ static T apply(From x) {
    return static_cast<T>(x);
  }
  __device__ static T plain(T x) { return x; }
};
template <typename T>
struct Lifted<Maybe<T>> {
  template <typename From>
  __device__ static Maybe<T> apply(From x) {
    return {static_cast<T>(x), 1};
  }
  __device__ static T plain(Maybe<T> x) { return x.value; }
};

/// The items of a thread: `count` of them, the rest changes nothing.
template <int P, typename Total, typename T>
__device__ __forceinline__ void load_items(Total (&items)[kScanItems], const T* from,
                                           long long count, Total none) {
  const Run<T, kScanItems> run = load<kScanItems, P>(from, count);
#pragma unroll
  for (int i = 0; i < kScanItems; ++i) {
    items[i] = i < count ? Lifted<Total>::apply(run[i]) : none;
  }
}

/// Block b has tile b % tiles of row b / tiles.
template <typename T, typename Total, typename Combine, int P, typename None>
__device__ __forceinline__ void store_tile_total(const T* from, Total* totals, long long length,
                                                 long long tiles, None none) {
  const long long row = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  const long long first = tile * kScanTile + threadIdx.x * kScanItems;
  Total items[kScanItems];
  load_items<P>(items, from + row * length + first, length - first, none());
  Total lane_total = items[0];
#pragma unroll
  for (int i = 1; i < kScanItems; ++i) lane_total = Combine()(lane_total, items[i]);
  Total total;
  before_in_block(lane_total, Combine(), none(), total);
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

/// Each total becomes what the tiles before have together; a block a row.
template <typename Total, typename Combine, typename None>
__device__ __forceinline__ void before_each_tile(Total* totals, long long tiles, None none) {
  Total* const row = totals + blockIdx.x * tiles;
  Total carry = none();
  for (long long first = 0; first < tiles; first += kScanThreads) {
    const long long tile = first + threadIdx.x;
    const Total lane_total = tile < tiles ? row[tile] : none();
    Total total;
    const Total before = before_in_block(lane_total, Combine(), none(), total);
    if (tile < tiles) row[tile] = Combine()(carry, before);
    carry = Combine()(carry, total);
  }
}

template <typename T, typename Total, typename Combine, int P, bool kExclusive, typename None>
__device__ __forceinline__ void scan_tile(const T* from, T* to, const Total* totals,
                                          long long length, long long tiles, None none) {
  const long long row = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  const long long first = tile * kScanTile + threadIdx.x * kScanItems;
  Total items[kScanItems];
  load_items<P>(items, from + row * length + first, length - first, none());
  Total lane_total = items[0];
#pragma unroll
  for (int i = 1; i < kScanItems; ++i) lane_total = Combine()(lane_total, items[i]);
  Total total;
  Total running = before_in_block(lane_total, Combine(), none(), total);
  if (tiles > 1) running = Combine()(totals[blockIdx.x], running);
  Run<T, kScanItems> run;
#pragma unroll
  for (int i = 0; i < kScanItems; ++i) {
    const Total next = Combine()(running, items[i]);
    run.put(i, static_cast<Compute<T>>(Lifted<Total>::plain(kExclusive ? running : next)));
    running = next;
  }
  store<P>(to + row * length + first, run, length - first);
}

}  // namespace kernwright
