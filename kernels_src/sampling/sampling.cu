// Draws a token of each row of logits without a sort of the row: the highest logits of groups of
// tokens tell the groups to look into. Long rows are spread over blocks; the last block draws.
#include <kernwright/elements.cuh>
#include <kernwright/logits.cuh>
#include <kernwright/overlap.cuh>
#include <kernwright/philox.cuh>
#include <kernwright/reduce.cuh>
#include <kernwright/select_tokens.cuh>

using namespace kernwright;

constexpr int kSearchWarps = 8;  // of find_group_maxima

/// Values for all rows, or one each where there is a pointer.
struct Settings {
  float temperature, top_p, min_p, penalty;
  const float *temperatures, *top_ps, *min_ps, *penalties;
  const int* top_ks;
  const void* previous;  // rows of tokens that the penalty is for; outside the vocabulary: none
  UInt64 seed, step;
  const UInt64* counter;  // added to the step
  const UInt64* seeds;    // one a row; the row's number then does not matter
  const int* steps;       // of each row: added to the step
  int top_k, previous_count;
  bool wide_previous, wide_out;
};

/// Data that a row's blocks share: for each group the highest logit (as ordered()) and the mass,
/// bits of seen tokens; a histogram; the number of finished blocks. Rows follow each other.
struct Scratch {
  unsigned* maxima;  // none: a block takes a row alone
  UInt64* masses;
  unsigned* seen;
  Histogram* histograms;  // none: no row is spread
  unsigned* arrived;
};

/// Counts the tokens of groups from `begin` to `end` and of bins up to `last` in the coarse
/// histogram.
template <typename GroupedRow>
__device__ void count_tokens(const GroupedRow& grouped, Shared& shared, unsigned begin,
                             unsigned end, int last, bool masses) {
  clear(shared.coarse);
  __syncthreads();
  const auto wanted = [&](unsigned group) { return Scale::bin(grouped.nearest(group)) <= last; };
  grouped.row.template walk<kWarps>(
      begin, end, wanted, [&](unsigned, unsigned, const float(&x)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float distance = grouped.scale.distance(x[i]);
          const int bin = Scale::bin(distance);
          if (bin > last) continue;
          atomicAdd(&shared.coarse.count[bin], 1u);
          if (masses) atomicAdd(&shared.coarse.mass[bin], Scale::weight(distance));
        }
      });
  __syncthreads();
}

/// The bin in which the highest logits of `count` groups lie: so many tokens are up to it.
template <typename GroupedRow>
__device__ int last_bin(const GroupedRow& grouped, Shared& shared, int count) {
  clear(shared.coarse);
  __syncthreads();
  for (unsigned group = threadIdx.x; group < grouped.row.groups(); group += kThreads) {
    const int bin = Scale::bin(grouped.nearest(group));
    if (bin < kBins) atomicAdd(&shared.coarse.count[bin], 1u);
  }
  __syncthreads();
  const Found found = locate(shared, {shared.coarse.count[threadIdx.x], 0}, {0, 0},
                             {static_cast<UInt64>(count), ~0ULL});
  return found.slot < 0 ? kBins - 1 : found.slot;
}

/// The least key that top-k and then top-p keep, from the coarse histogram.
template <typename GroupedRow>
__device__ UInt64 least_key(const GroupedRow& grouped, Shared& shared, int top_k, float top_p) {
  const UInt64 most = top_k > 0 ? static_cast<UInt64>(top_k) : ~0ULL;
  const Cut first = select(grouped, shared, {most, ~0ULL}, 0);
  if (!(top_p < 1)) return first.key;
  const double part = static_cast<double>(first.mass) * static_cast<double>(fmaxf(top_p, 0));
  const UInt64 mass = min(max(static_cast<UInt64>(part), 1ULL), first.mass);
  __syncthreads();
  return select(grouped, shared, {~0ULL, mass}, first.key).key;
}

// ---- the draw

__device__ __forceinline__ void store(void* out, UInt64 row, unsigned token, bool wide) {
  if (wide) {
    static_cast<Int64*>(out)[row] = token;
  } else {
    static_cast<int*>(out)[row] = static_cast<int>(token);
  }
}

/// The tokens that may be drawn: keys from `least` on, within `reach`.
template <typename GroupedRow>
struct Kept {
  const GroupedRow& grouped;
  UInt64 least;
  float reach;

  __device__ bool wanted(unsigned group) const {
    const float nearest = grouped.nearest(group);
    return grouped.maxima[group] >= static_cast<unsigned>(least >> 32) && nearest < kFarthest &&
           nearest <= reach;
  }
  __device__ UInt64 weight(float x, unsigned token) const {
    const float distance = grouped.scale.distance(x);
    return distance <= reach && ordering_key(x, token) >= least ? Scale::weight(distance) : 0ULL;
  }
  /// Finds the masses of the wanted groups from `begin` to `end`.
  __device__ void find_masses(unsigned begin, unsigned end) const {
    grouped.row.template walk<kWarps>(
        begin, end, [&](unsigned group) { return wanted(group); },
        [&](unsigned group, unsigned first, const float(&x)[4]) {
          UInt64 mass = 0;
#pragma unroll
          for (int i = 0; i < 4; ++i) mass += weight(x[i], first + i);
          mass = warp_reduce(mass, Sum());
          if (threadIdx.x % 32 == 0) grouped.masses[group] = mass;
        });
  }
};

/// The token of `group` at which the running sum of weights, from `before` on, passes `target`. One
/// warp calls it; one lane stores the token.
template <typename GroupedRow>
__device__ void draw_within(const Kept<GroupedRow>& kept, unsigned group, UInt64 before,
                            UInt64 target, void* out, UInt64 number, bool wide) {
  const unsigned first = group * kGroup + threadIdx.x % 32 * 4;
  float x[4];
  kept.grouped.row.adjust(kept.grouped.row.load(group), first, x);
  UInt64 weight[4], lane_mass = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) lane_mass += weight[i] = kept.weight(x[i], first + i);
  UInt64 at = before + warp_scan({0, lane_mass}).mass - lane_mass;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (target >= at && target < at + weight[i]) store(out, number, first + i, wide);
    at += weight[i];
  }
}

/// Draws a token with the probability of its weight, by the masses of the groups.
template <typename GroupedRow>
__device__ void draw(const Kept<GroupedRow>& kept, Shared& shared, UInt64 random, void* out,
                     UInt64 number, bool wide) {
  const unsigned groups = kept.grouped.row.groups();
  const unsigned part = (groups + kThreads - 1) / kThreads;
  const auto group_mass = [&](unsigned group) {
    return group < groups && kept.wanted(group) ? kept.grouped.masses[group] : 0ULL;
  };
  UInt64 lane_mass = 0;
  for (unsigned i = 0; i < part; ++i) lane_mass += group_mass(threadIdx.x * part + i);
  const UInt64 target = __umul64hi(random, block_reduce<kThreads>(lane_mass, Sum(), 0ULL));
  const Found found = locate(shared, {0, lane_mass}, {0, 0}, {~0ULL, target + 1});
  if (threadIdx.x >= 32) return;
  UInt64 before = found.before.mass;
  unsigned group = found.slot * part;
  for (;; ++group) {
    const UInt64 mass = group_mass(group);
    if (target < before + mass) break;
    before += mass;
  }
  draw_within(kept, group, before, target, out, number, wide);
}

/// The lowest token of the highest logit; one warp.
template <typename GroupedRow>
__device__ void store_highest(const GroupedRow& grouped, unsigned highest, void* out, UInt64 number,
                              bool wide) {
  unsigned group = threadIdx.x;
  while (group < grouped.row.groups() && grouped.maxima[group] != highest) group += 32;
  group = warp_reduce(group, Minimum());
  const unsigned first = group * kGroup + threadIdx.x % 32 * 4;
  float x[4];
  grouped.row.adjust(grouped.row.load(group), first, x);
  unsigned token = ~0u;
#pragma unroll
  for (int i = 3; i >= 0; --i) {
    if (first + i < grouped.row.count && ordered(x[i]) == highest) token = first + i;
  }
  token = warp_reduce(token, Minimum());
  if (threadIdx.x == 0) store(out, number, token, wide);
}

// ---- rows

/// Sets the bits of tokens from `begin` on that occur in the row of `previous`, within `groups`
/// groups.
__device__ void mark_seen(unsigned* seen, unsigned begin, unsigned groups, const Settings& settings,
                          UInt64 number) {
  const unsigned words = groups * kSeenWords;
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x) seen[i] = 0;
  __syncthreads();
  const UInt64 base = number * settings.previous_count;
  for (int i = threadIdx.x; i < settings.previous_count; i += blockDim.x) {
    const Int64 token = settings.wide_previous
                            ? static_cast<const Int64*>(settings.previous)[base + i]
                            : static_cast<const int*>(settings.previous)[base + i];
    const Int64 at = token - begin;
    if (token >= begin && at / 32 < words) atomicOr(&seen[at / 32], 1u << at % 32);
  }
  __syncthreads();
}

/// The value of a row, or that of all.
template <typename T>
__device__ __forceinline__ T row_setting(const T* each, T value, UInt64 number) {
  return each ? each[number] : value;
}

template <typename T, bool kPacked>
__device__ LogitRow<T, kPacked> make_row(const T* logits, UInt64 stride, unsigned count,
                                         const Settings& settings, UInt64 number) {
  return {logits + number * stride, count, nullptr,
          row_setting(settings.penalties, settings.penalty, number)};
}

/// Block c of `chunks` of a row finds the highest logits of `chunk` groups, at most 32 for each
/// warp, and the seen tokens of `previous`. Block 0 clears memory for later sums of blocks.
template <typename T, bool kPacked>
__global__ void __launch_bounds__(kSearchWarps * 32)
    find_group_maxima(const T* logits, UInt64 row_stride, unsigned count, const Settings settings,
                      const Scratch scratch, unsigned chunks, unsigned chunk) {
  pdl_wait_then_launch();
  __shared__ unsigned seen[kSearchWarps * 32 * kSeenWords];
  const UInt64 number = blockIdx.x / chunks;
  const unsigned begin = blockIdx.x % chunks * chunk;
  LogitRow<T, kPacked> row = make_row<T, kPacked>(logits, row_stride, count, settings, number);
  const unsigned groups = row.groups(), end = min(begin + chunk, groups);
  if (settings.previous != nullptr && row.penalty != 1) {
    mark_seen(seen, begin * kGroup, end - begin, settings, number);
    unsigned* const to = scratch.seen + (number * groups + begin) * kSeenWords;
    for (unsigned i = threadIdx.x; i < (end - begin) * kSeenWords; i += blockDim.x) to[i] = seen[i];
    row.seen = seen - begin * kSeenWords;
  }
  if (begin == 0 && scratch.histograms != nullptr) {
    Histogram& histogram = scratch.histograms[number];
    for (int i = threadIdx.x; i < kBins; i += blockDim.x) {
      histogram.count[i] = 0;
      histogram.mass[i] = 0;
    }
    if (threadIdx.x == 0) scratch.arrived[number] = 0;
  }
  row.template find_maxima<kSearchWarps>(begin, end, scratch.maxima + number * groups);
}

/// Adds the block's histogram, if it has one, to the row's. True in the last block: it then has the
/// whole row's.
__device__ bool gather_blocks(Shared& shared, Histogram& whole, bool counted, unsigned* arrived,
                              unsigned chunks) {
  const int bin = threadIdx.x;
  if (counted && shared.coarse.count[bin] != 0) {
    atomicAdd(&whole.count[bin], shared.coarse.count[bin]);
    atomicAdd(&whole.mass[bin], shared.coarse.mass[bin]);
  }
  if (!is_last_block(arrived, chunks)) return false;
  if (counted) {
    shared.coarse.count[bin] = whole.count[bin];
    shared.coarse.mass[bin] = whole.mass[bin];
    __syncthreads();
  }
  return true;
}

/// Block c of `chunks` of a row. Where top-k keeps few tokens, the first block works alone: it
/// reads the groups of the highest logits again, and no further groups. Otherwise each block
/// counts, or weighs, a share of the groups, and the last block goes on.
template <typename T, bool kPacked>
__global__ void __launch_bounds__(kThreads)
    sample_rows(void* out, const T* logits, UInt64 row_stride, unsigned count,
                const Settings settings, const Scratch scratch, unsigned chunks) {
  __shared__ Shared shared;
  pdl_wait_then_launch();
  const UInt64 number = blockIdx.x / chunks;
  const unsigned chunk = blockIdx.x % chunks;
  const float temperature = row_setting(settings.temperatures, settings.temperature, number);
  const float top_p = row_setting(settings.top_ps, settings.top_p, number);
  const float min_p = row_setting(settings.min_ps, settings.min_p, number);
  const int top_k = row_setting(settings.top_ks, settings.top_k, number);
  Groups<T, kPacked> grouped = {make_row<T, kPacked>(logits, row_stride, count, settings, number),
                                {0, 1 / temperature},
                                shared.maxima,
                                shared.masses};
  const unsigned groups = grouped.row.groups();
  const bool penalty = settings.previous != nullptr && grouped.row.penalty != 1;
  if (scratch.maxima != nullptr) {
    grouped.maxima = scratch.maxima + number * groups;
    grouped.masses = scratch.masses + number * groups;
    if (penalty) grouped.row.seen = scratch.seen + number * groups * kSeenWords;
  } else {
    if (penalty) {
      mark_seen(shared.seen, 0, groups, settings, number);
      grouped.row.seen = shared.seen;
    }
    grouped.row.template find_maxima<kWarps>(0, groups, grouped.maxima);
    __syncthreads();
  }
  unsigned highest = 0;
  for (unsigned i = threadIdx.x; i < groups; i += kThreads)
    highest = max(highest, grouped.maxima[i]);
  highest = block_reduce<kThreads>(highest, Maximum(), 0u);
  grouped.scale.highest = unordered(highest);
  const bool greedy = !(temperature > 0) || grouped.scale.highest == -kInfinity;
  const bool bounded = top_k > 0 && static_cast<UInt64>(top_k) * 4 <= groups;
  const bool spread = chunks > 1 && !greedy && !bounded;
  if (!spread && chunk != 0) return;
  if (greedy) {
    if (threadIdx.x < 32) store_highest(grouped, highest, out, number, settings.wide_out);
    return;
  }
  const bool filters = (top_k > 0 && top_k < count) || top_p < 1;
  Kept<Groups<T, kPacked>> kept = {grouped, 0, min_p > 0 ? -logf(min_p) : kInfinity};
  const unsigned share = spread ? (groups + chunks - 1) / chunks : groups;
  const unsigned begin = min(chunk * share, groups), end = min(begin + share, groups);
  if (filters) {
    const int last = bounded ? last_bin(grouped, shared, top_k) : kBins - 1;
    count_tokens(grouped, shared, begin, end, last, top_p < 1);
  } else {
    kept.find_masses(begin, end);
  }
  if (spread &&
      !gather_blocks(shared, scratch.histograms[number], filters, &scratch.arrived[number], chunks))
    return;
  if (filters) {
    kept.least = least_key(grouped, shared, top_k, top_p);
    kept.find_masses(0, groups);
  }
  __syncthreads();
  const UInt64 step = settings.step + (settings.counter ? *settings.counter : 0) +
                      row_setting(settings.steps, 0, number);
  const UInt64 seed = row_setting(settings.seeds, settings.seed, number);
  const uint4 bits = Philox(seed, settings.seeds ? 0 : number, step).next4();
  draw(kept, shared, static_cast<UInt64>(bits.x) << 32 | bits.y, out, number, settings.wide_out);
}
