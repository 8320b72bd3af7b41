// The highest logits of a row up to a number or a mass of them: a histogram finds where that is,
// and only the tokens around it are sorted. For one block of 1024 threads.
#pragma once

#include <kernwright/logits.cuh>

namespace kernwright {

constexpr int kThreads = kBins;  // a thread looks at one bin
constexpr int kWarps = kThreads / 32;
constexpr int kDigit = 10;  // bits: as many as there are bins
constexpr int kList = 2 * kThreads;
constexpr int kBlockGroups = 128;  // of rows that a block takes alone
constexpr int kSeenWords = kGroup / 32;

/// How many tokens, and the sum of their weights.
struct Tally {
  UInt64 count, mass;
};
__device__ __forceinline__ Tally operator+(Tally a, Tally b) {
  return {a.count + b.count, a.mass + b.mass};
}

/// The end of a selection: it takes tokens from the most probable one on until it has either.
struct Goal {
  UInt64 count, mass;
  __device__ bool reached(Tally t) const { return t.count >= count || t.mass >= mass; }
};

struct Histogram {
  unsigned count[kBins];
  UInt64 mass[kBins];
};

struct Found {
  Tally before, tally;
  int slot;  // -1: nowhere
};

struct Shared {
  Histogram coarse;
  union {
    Histogram fine;
    UInt64 list[kList];
  };
  Tally warp[32];
  Found found;
  unsigned listed;
  unsigned maxima[kBlockGroups];
  UInt64 masses[kBlockGroups];
  unsigned seen[kBlockGroups * kSeenWords];
};

// ---- sums over the block

__device__ __forceinline__ Tally warp_scan(Tally value) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const Tally before = {__shfl_up_sync(~0u, value.count, distance),
                          __shfl_up_sync(~0u, value.mass, distance)};
    if (lane >= distance) value = value + before;
  }
  return value;
}

/// The first thread whose running sum, begun with `before`, reaches the goal.
__device__ __noinline__ Found locate(Shared& shared, Tally tally, Tally before, Goal goal) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Tally within = warp_scan(tally);
  if (lane == 31) shared.warp[warp] = within;
  __syncthreads();
  const Tally warps = warp_scan(shared.warp[lane]);
  const Tally earlier = {__shfl_sync(~0u, warps.count, (warp + 31) % 32),
                         __shfl_sync(~0u, warps.mass, (warp + 31) % 32)};
  if (warp > 0) before = before + earlier;
  const Tally upto = before + within;
  const Tally until = {upto.count - tally.count, upto.mass - tally.mass};
  if (goal.reached(upto) && !goal.reached(until)) {
    shared.found = {until, tally, static_cast<int>(threadIdx.x)};
  } else if (threadIdx.x == kThreads - 1 && !goal.reached(upto)) {
    shared.found = {upto, {0, 0}, -1};
  }
  __syncthreads();
  const Found found = shared.found;
  __syncthreads();
  return found;
}

/// A row, and the known bounds of the row's groups.
template <typename T, bool kPacked>
struct Groups {
  LogitRow<T, kPacked> row;
  Scale scale;
  unsigned* maxima;
  UInt64* masses;

  __device__ float nearest(unsigned group) const {
    return scale.distance(unordered(maxima[group]));
  }
  template <typename Wanted, typename Visit>
  __device__ void walk(Wanted wanted, Visit visit) const {
    row.template walk<kWarps>(0, row.groups(), wanted, visit);
  }
};

// ---- the least key that is kept

struct Cut {
  UInt64 key;   // 0: all are kept
  UInt64 mass;  // of what is kept
};

__device__ __forceinline__ void clear(Histogram& histogram) {
  histogram.count[threadIdx.x] = 0;
  histogram.mass[threadIdx.x] = 0;
}

/// Keys in descending order; `count` of them, what is behind is overwritten.
__device__ void sort_list(UInt64* list, unsigned count) {
  unsigned padded = 2;
  while (padded < count) padded *= 2;
  for (unsigned i = count + threadIdx.x; i < padded; i += kThreads) list[i] = 0;
  for (unsigned size = 2; size <= padded; size *= 2) {
    for (unsigned stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      if (threadIdx.x < padded / 2) {
        const unsigned i = threadIdx.x / stride * 2 * stride + threadIdx.x % stride;
        const UInt64 a = list[i], b = list[i + stride];
        if ((a < b) == ((i & size) == 0)) {
          list[i] = b;
          list[i + stride] = a;
        }
      }
    }
  }
  __syncthreads();
}

/// Takes tokens of keys from `floor` on, the highest first, until the goal is reached. The coarse
/// histogram tells the last bin, whose tokens are sorted; too many tokens are first narrowed down
/// by further digits of the keys.
template <typename GroupedRow>
__device__ __noinline__ Cut select(const GroupedRow& grouped, Shared& shared, Goal goal,
                                   UInt64 floor) {
  Found found = locate(shared, {shared.coarse.count[threadIdx.x], shared.coarse.mass[threadIdx.x]},
                       {0, 0}, goal);
  if (found.slot < 0) return {floor, found.before.mass};
  const int bin = found.slot;
  int shift = 64;
  UInt64 prefix = 0;
  const auto inside = [&](UInt64 key, float distance, int low) {
    return Scale::bin(distance) == bin && key >= floor && (low == 64 || key >> low == prefix);
  };
  const auto wanted = [&](unsigned group) { return Scale::bin(grouped.nearest(group)) <= bin; };
  while (found.tally.count > kList) {
    const int bits = min(kDigit, shift), mask = (1 << bits) - 1, above = shift;
    shift -= bits;
    clear(shared.fine);
    __syncthreads();
    grouped.walk(wanted, [&](unsigned, unsigned first, const float(&x)[4]) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float distance = grouped.scale.distance(x[i]);
        const UInt64 key = ordering_key(x[i], first + i);
        if (!inside(key, distance, above)) continue;
        const int slot = mask - static_cast<int>(key >> shift & mask);
        atomicAdd(&shared.fine.count[slot], 1u);
        atomicAdd(&shared.fine.mass[slot], Scale::weight(distance));
      }
    });
    __syncthreads();
    found = locate(shared, {shared.fine.count[threadIdx.x], shared.fine.mass[threadIdx.x]},
                   found.before, goal);
    prefix = prefix << bits | static_cast<UInt64>(mask - found.slot);
  }
  if (threadIdx.x == 0) shared.listed = 0;
  __syncthreads();
  grouped.walk(wanted, [&](unsigned, unsigned first, const float(&x)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float distance = grouped.scale.distance(x[i]);
      const UInt64 key = ordering_key(x[i], first + i);
      if (inside(key, distance, shift)) shared.list[atomicAdd(&shared.listed, 1u)] = key;
    }
  });
  __syncthreads();
  const unsigned listed = shared.listed;
  sort_list(shared.list, listed);
  Tally before = found.before;
  for (unsigned base = 0; base < listed; base += kThreads) {
    const unsigned i = base + threadIdx.x;
    Tally tally = {0, 0};
    if (i < listed) {
      const float x = unordered(static_cast<unsigned>(shared.list[i] >> 32));
      tally = {1, Scale::weight(grouped.scale.distance(x))};
    }
    found = locate(shared, tally, before, goal);
    if (found.slot >= 0) {
      return {shared.list[base + found.slot], found.before.mass + found.tally.mass};
    }
    before = found.before;
  }
  return {floor, before.mass};
}

}  // namespace kernwright
