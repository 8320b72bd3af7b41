// Draws a token of each row of logits: one block a row, no sort of the row.
#include <kernwright/elements.cuh>
#include <kernwright/philox.cuh>
#include <kernwright/reduce.cuh>

using namespace kernwright;

constexpr int kThreads = 1024;
constexpr int kBins = kThreads;  // a thread looks at one
constexpr int kDigit = 10;       // bits: as many as there are bins
constexpr int kList = 2 * kThreads;
constexpr int kAhead = 4;        // loads of a thread under way, as rows come from afar
constexpr float kFarthest = 27.7f;        // up to here weights are above 0
constexpr float kOne = 1099511627776.0f;  // 2 to the 40
constexpr float kInfinity = 1.0f / 0.0f;

/// Values for all rows, or one each where there is a pointer.
struct Settings {
  float temperature, top_p, min_p, penalty;
  const float *temperatures, *top_ps, *min_ps, *penalties;
  const int* top_ks;
  const void* previous;  // rows of tokens that the penalty is for; outside the vocabulary: none
  UInt64 seed, step;
  const UInt64* counter;  // added to the step
  int top_k, previous_count;
  bool wide_previous, wide_out;
};

/// How many tokens, and the sum of their weights. Weights are whole, so that sums are exact and do
/// not depend on their order.
struct Tally {
  UInt64 count, mass;
};
__device__ __forceinline__ Tally operator+(Tally a, Tally b) {
  return {a.count + b.count, a.mass + b.mass};
}

/// What a selection stops at: it takes tokens from the most probable one on until it has either.
struct Goal {
  UInt64 count, mass;
  __device__ bool reached(Tally t) const { return t.count >= count || t.mass >= mass; }
};

struct Histogram {
  unsigned count[kBins];
  UInt64 mass[kBins];
};

struct Found {
  Tally before, own;
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
};

// ---- a row

/// In the order of the floats.
__device__ __forceinline__ unsigned ordered(float x) {
  const unsigned bits = __float_as_uint(x);
  return bits ^ (bits >> 31 ? ~0u : 0x80000000u);
}
__device__ __forceinline__ float unordered(unsigned bits) {
  return __uint_as_float(bits ^ (bits >> 31 ? 0x80000000u : ~0u));
}
/// Larger for a larger logit, and of equal ones for the lower token.
__device__ __forceinline__ UInt64 key_of(float x, unsigned token) {
  return static_cast<UInt64>(ordered(x)) << 32 | (0xffffffffu - token);
}

/// Apart, as it is rare and a division long.
__device__ __noinline__ float penalised(float x, float penalty) {
  return x > 0 ? x / penalty : x * penalty;
}

template <typename T, int Width>
__device__ __noinline__ Pack<T, Width> load_end(const T* data, unsigned first, unsigned end) {
  Pack<T, Width> values = {};
#pragma unroll
  for (int i = 0; i < Width; ++i) {
    if (first + i < end) values.value[i] = data[first + i];
  }
  return values;
}

template <typename T, bool kPacked>
struct Row {
  static constexpr int kVector = kPacked ? 4 : 1;
  static constexpr unsigned kStride = 32 * kVector;
  using Loaded = Pack<T, kVector>;
  const T* __restrict__ data;
  unsigned count;
  const unsigned* seen;  // a bit a token, or none
  float penalty;
  float highest, inverse_temperature;

  __device__ float adjusted(T raw, unsigned token) const {
    float x = to_compute(raw);
    if (seen != nullptr && (seen[token / 32] >> token % 32 & 1)) {
      x = penalised(x, penalty);
    }
    return x == x ? x + 0.0f : -kInfinity;  // NaN is never drawn, and -0 is 0
  }
  __device__ float distance(float x) const {
    if (x == highest) return 0;
    return x == -kInfinity ? kInfinity : (highest - x) * inverse_temperature;
  }
  __device__ static UInt64 weight(float distance) {
    return distance < kFarthest ? static_cast<UInt64>(expf(-distance) * kOne) : 0;
  }
  __device__ static int bin(float distance) {
    return min(static_cast<int>(distance * (kBins / kFarthest)), kBins - 1);
  }

  __device__ Loaded load(unsigned first, unsigned end) const {
    if (kPacked && first + kVector <= end) return *reinterpret_cast<const Loaded*>(data + first);
    return first < end ? load_end<T, kVector>(data, first, end) : Loaded{};
  }
  /// visit(first token, its kVector logits) in the order of the tokens, for each warp a part of the
  /// row; all lanes of a warp come along. What lies behind the row is -infinity.
  template <typename Visit>
  __device__ void walk(Visit visit) const {
    const unsigned part = (count + 32 * kStride - 1) / (32 * kStride) * kStride;
    const unsigned begin = threadIdx.x / 32 * part;
    const unsigned end = min(begin + part, count);
    Loaded ahead[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      ahead[i] = load(begin + i * kStride + threadIdx.x % 32 * kVector, end);
    }
#pragma unroll 1
    for (unsigned base = begin; base < end; base += kStride) {
      const unsigned first = base + threadIdx.x % 32 * kVector;
      const Loaded raw = ahead[0];
#pragma unroll
      for (int i = 0; i + 1 < kAhead; ++i) ahead[i] = ahead[i + 1];
      ahead[kAhead - 1] = load(first + kAhead * kStride, end);
      float x[kVector];
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        x[i] = first + i < count ? adjusted(raw.value[i], first + i) : -kInfinity;
      }
      if (visit(first, x)) return;
    }
  }
  /// visit(token, logit), one after the other: little code for what is rare.
  template <typename Visit>
  __device__ void walk_singly(Visit visit) const {
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < count; i += kThreads) visit(i, adjusted(data[i], i));
  }
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
__device__ __noinline__ Found locate(Shared& shared, Tally own, Tally before, Goal goal) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Tally within = warp_scan(own);
  if (lane == 31) shared.warp[warp] = within;
  if (threadIdx.x == 0) shared.found.slot = -1;
  __syncthreads();
  const Tally warps = warp_scan(shared.warp[lane]);
  const Tally earlier = {__shfl_sync(~0u, warps.count, (warp + 31) % 32),
                         __shfl_sync(~0u, warps.mass, (warp + 31) % 32)};
  if (warp > 0) before = before + earlier;
  const Tally upto = before + within;
  const Tally until = {upto.count - own.count, upto.mass - own.mass};
  if (goal.reached(upto) && !goal.reached(until)) {
    shared.found = {until, own, static_cast<int>(threadIdx.x)};
  } else if (threadIdx.x == kThreads - 1 && !goal.reached(upto)) {
    shared.found.before = upto;
  }
  __syncthreads();
  const Found found = shared.found;
  __syncthreads();
  return found;
}

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
/// histogram says in which bin that is; its tokens are sorted, or where they are too many, first
/// narrowed down by further digits of their keys.
template <typename Values>
__device__ __noinline__ Cut select(const Values& row, Shared& shared, Goal goal, UInt64 floor) {
  Found found = locate(shared, {shared.coarse.count[threadIdx.x], shared.coarse.mass[threadIdx.x]},
                       {0, 0}, goal);
  if (found.slot < 0) return {floor, found.before.mass};
  const int bin = found.slot;
  int shift = 64;
  UInt64 prefix = 0;
  const auto inside = [&](UInt64 key, float distance, int low) {
    return distance < kFarthest && key >= floor && Values::bin(distance) == bin &&
           (low == 64 || key >> low == prefix);
  };
  while (found.own.count > kList) {
    const int bits = min(kDigit, shift), mask = (1 << bits) - 1, above = shift;
    shift -= bits;
    clear(shared.fine);
    __syncthreads();
    row.walk_singly([&](unsigned token, float x) {
      const float distance = row.distance(x);
      const UInt64 key = key_of(x, token);
      if (!inside(key, distance, above)) return;
      const int slot = mask - static_cast<int>(key >> shift & mask);
      atomicAdd(&shared.fine.count[slot], 1u);
      atomicAdd(&shared.fine.mass[slot], Values::weight(distance));
    });
    __syncthreads();
    found = locate(shared, {shared.fine.count[threadIdx.x], shared.fine.mass[threadIdx.x]},
                   found.before, goal);
    prefix = prefix << bits | static_cast<UInt64>(mask - found.slot);
  }
  if (threadIdx.x == 0) shared.listed = 0;
  __syncthreads();
  row.walk([&](unsigned first, const float* x) {
#pragma unroll
    for (int i = 0; i < Values::kVector; ++i) {
      const float distance = row.distance(x[i]);
      const UInt64 key = key_of(x[i], first + i);
      if (inside(key, distance, shift)) shared.list[atomicAdd(&shared.listed, 1u)] = key;
    }
    return false;
  });
  __syncthreads();
  const unsigned listed = shared.listed;
  sort_list(shared.list, listed);
  Tally before = found.before;
  for (unsigned base = 0; base < listed; base += kThreads) {
    const unsigned i = base + threadIdx.x;
    Tally own = {0, 0};
    if (i < listed) {
      const float x = unordered(static_cast<unsigned>(shared.list[i] >> 32));
      own = {1, Values::weight(row.distance(x))};
    }
    found = locate(shared, own, before, goal);
    if (found.slot >= 0) {
      return {shared.list[base + found.slot], found.before.mass + found.own.mass};
    }
    before = found.before;
  }
  return {floor, before.mass};
}

/// The least key that top-k and then top-p keep.
template <typename Values>
__device__ UInt64 least_key(const Values& row, Shared& shared, int top_k, float top_p) {
  clear(shared.coarse);
  __syncthreads();
  row.walk([&](unsigned, const float* x) {
#pragma unroll
    for (int i = 0; i < Values::kVector; ++i) {
      const float distance = row.distance(x[i]);
      if (!(distance < kFarthest)) continue;
      const int bin = Values::bin(distance);
      atomicAdd(&shared.coarse.count[bin], 1u);
      if (top_p < 1) atomicAdd(&shared.coarse.mass[bin], Values::weight(distance));
    }
    return false;
  });
  __syncthreads();
  const UInt64 most = top_k > 0 ? static_cast<UInt64>(top_k) : ~0ULL;
  const Cut first = select(row, shared, {most, ~0ULL}, 0);
  if (!(top_p < 1)) return first.key;
  const double part = static_cast<double>(first.mass) * static_cast<double>(fmaxf(top_p, 0));
  const UInt64 mass = min(max(static_cast<UInt64>(part), 1ULL), first.mass);
  __syncthreads();
  return select(row, shared, {~0ULL, mass}, first.key).key;
}

// ---- the draw

__device__ __forceinline__ void store(void* out, UInt64 row, unsigned token, bool wide) {
  if (wide) {
    static_cast<Int64*>(out)[row] = token;
  } else {
    static_cast<int*>(out)[row] = static_cast<int>(token);
  }
}

/// A token of a key from `least` on and within `reach`, with the chance of its weight.
template <typename Values>
__device__ void draw(const Values& row, Shared& shared, UInt64 least, float reach, UInt64 random,
                     void* out, bool wide) {
  const auto weight_of = [&](float x, unsigned token) {
    const float distance = row.distance(x);
    return distance <= reach && key_of(x, token) >= least ? Values::weight(distance) : 0ULL;
  };
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  UInt64 mass = 0;
  row.walk([&](unsigned first, const float* x) {
#pragma unroll
    for (int i = 0; i < Values::kVector; ++i) mass += weight_of(x[i], first + i);
    return false;
  });
  mass = warp_reduce(mass, Sum());
  if (lane == 0) shared.warp[warp] = {0, mass};
  __syncthreads();
  const UInt64 upto = warp_scan(shared.warp[lane]).mass;
  const UInt64 target = __umul64hi(random, __shfl_sync(~0u, upto, 31));
  const UInt64 end = __shfl_sync(~0u, upto, warp);
  if (target >= end || target < end - mass) return;
  UInt64 before = end - mass;
  row.walk([&](unsigned first, const float* x) {
    UInt64 own = 0;
#pragma unroll
    for (int i = 0; i < Values::kVector; ++i) own += weight_of(x[i], first + i);
    const UInt64 within = warp_scan({0, own}).mass;
    const UInt64 all = __shfl_sync(~0u, within, 31);
    UInt64 at = before + within - own;
    const bool here = target >= at && target < at + own;
    before += all;
    if (!here) return target < before;
#pragma unroll 1
    for (int i = 0; i < Values::kVector && first + i < row.count; ++i) {
      const UInt64 weight = weight_of(row.adjusted(row.data[first + i], first + i), first + i);
      if (target >= at && target < at + weight) store(out, blockIdx.x, first + i, wide);
      at += weight;
    }
    return true;
  });
}

__device__ void mark_seen(unsigned* seen, unsigned count, const Settings& settings) {
  for (unsigned i = threadIdx.x; i < (count + 31) / 32; i += kThreads) seen[i] = 0;
  __syncthreads();
  const UInt64 base = static_cast<UInt64>(blockIdx.x) * settings.previous_count;
  for (int i = threadIdx.x; i < settings.previous_count; i += kThreads) {
    const Int64 token = settings.wide_previous
                            ? static_cast<const Int64*>(settings.previous)[base + i]
                            : static_cast<const int*>(settings.previous)[base + i];
    if (token >= 0 && token < count) atomicOr(&seen[token / 32], 1u << token % 32);
  }
  __syncthreads();
}

template <typename T, bool kPacked>
__global__ void __launch_bounds__(kThreads)
    sample_rows(void* out, const T* logits, UInt64 row_stride, unsigned count,
                const Settings settings) {
  __shared__ Shared shared;
  extern __shared__ unsigned seen[];
  const UInt64 number = blockIdx.x;
  const auto of_row = [&](const auto* each, auto value) { return each ? each[number] : value; };
  const float temperature = of_row(settings.temperatures, settings.temperature);
  const float top_p = of_row(settings.top_ps, settings.top_p);
  const float min_p = of_row(settings.min_ps, settings.min_p);
  const int top_k = of_row(settings.top_ks, settings.top_k);
  Row<T, kPacked> row = {logits + number * row_stride, count, nullptr,
                         of_row(settings.penalties, settings.penalty), 0, 1 / temperature};
  if (settings.previous != nullptr && row.penalty != 1) {
    mark_seen(seen, count, settings);
    row.seen = seen;
  }
  UInt64 best = 0;
  row.walk([&](unsigned first, const float* x) {
#pragma unroll
    for (int i = 0; i < Row<T, kPacked>::kVector; ++i) {
      if (first + i < count) best = max(best, key_of(x[i], first + i));
    }
    return false;
  });
  best = block_reduce<kThreads>(best, Maximum(), 0ULL);
  row.highest = unordered(static_cast<unsigned>(best >> 32));
  if (!(temperature > 0) || row.highest == -kInfinity) {
    if (threadIdx.x == 0)
      store(out, number, 0xffffffffu - static_cast<unsigned>(best), settings.wide_out);
    return;
  }
  const bool filters = (top_k > 0 && top_k < count) || top_p < 1;
  const UInt64 least = filters ? least_key(row, shared, top_k, top_p) : 0;
  const UInt64 step = settings.step + (settings.counter ? *settings.counter : 0);
  const uint4 bits = Philox(settings.seed, number, step).next4();
  __syncthreads();
  draw(row, shared, least, min_p > 0 ? -logf(min_p) : kInfinity,
       static_cast<UInt64>(bits.x) << 32 | bits.y, out, settings.wide_out);
}
