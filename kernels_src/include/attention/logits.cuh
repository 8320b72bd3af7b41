// Rows of logits as groups of 128 tokens with the highest logit of each: walks leave groups out.
#pragma once

#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>

namespace kernwright {

constexpr int kGroup = 128;               // tokens, four a lane
constexpr float kFarthest = 27.7f;        // up to here weights are above 0
constexpr float kOne = 1099511627776.0f;  // 2 to the 40
constexpr float kInfinity = 1.0f / 0.0f;
constexpr int kBins = 1024;  // equal parts of the distance up to kFarthest

/// The bits of a float as an unsigned number: the order of the floats stays.
__device__ __forceinline__ unsigned ordered(float x) {
  const unsigned bits = __float_as_uint(x);
  return bits ^ (bits >> 31 ? ~0u : 0x80000000u);
}
__device__ __forceinline__ float unordered(unsigned bits) {
  return __uint_as_float(bits ^ (bits >> 31 ? 0x80000000u : ~0u));
}
/// Larger for a larger logit, and of equal ones for the lower token.
__device__ __forceinline__ UInt64 ordering_key(float x, unsigned token) {
  return static_cast<UInt64>(ordered(x)) << 32 | (0xffffffffu - token);
}

/// Apart, as it is rare and a division long.
__device__ __noinline__ float penalised(float x, float penalty) {
  return x > 0 ? x / penalty : x * penalty;
}

template <typename T>
__device__ __noinline__ Pack<T, 4> load_singly(const T* data, unsigned first, unsigned end) {
  Pack<T, 4> values = {};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (first + i < end) values.value[i] = data[first + i];
  }
  return values;
}

/// The distance of a logit from the row's maximum, and the weight of the logit.
struct Scale {
  float highest, inverse_temperature;

  __device__ float distance(float x) const {
    if (x == highest) return 0;
    return x == -kInfinity ? kInfinity : (highest - x) * inverse_temperature;
  }
  /// Whole, so that sums are exact and do not depend on their order.
  __device__ static UInt64 weight(float distance) {
    return distance < kFarthest ? static_cast<UInt64>(expf(-distance) * kOne) : 0;
  }
  __device__ static int bin(float distance) {
    return distance < kFarthest ? min(static_cast<int>(distance * (kBins / kFarthest)), kBins - 1)
                                : kBins;
  }
};

template <typename T, bool kPacked>
struct LogitRow {
  static constexpr int kAhead = 4;  // loads of a thread under way, as rows come from afar
  const T* __restrict__ data;
  unsigned count;
  const unsigned* seen;  // a bit a token, or none
  float penalty;

  __device__ unsigned groups() const { return (count + kGroup - 1) / kGroup; }

  __device__ float adjusted(T raw, unsigned token) const {
    float x = to_compute(raw);
    if (seen != nullptr && (seen[token / 32] >> token % 32 & 1)) x = penalised(x, penalty);
    return x == x ? x + 0.0f : -kInfinity;  // NaN is never drawn, and -0 is 0
  }
  __device__ float at(unsigned token) const { return adjusted(data[token], token); }

  __device__ Pack<T, 4> load(unsigned group) const {
    const unsigned first = group * kGroup + threadIdx.x % 32 * 4;
    if (kPacked && first + 4 <= count) return *reinterpret_cast<const Pack<T, 4>*>(data + first);
    return load_singly(data, first, count);
  }
  /// Elements behind the row become -infinity.
  __device__ void adjust(const Pack<T, 4>& raw, unsigned first, float (&x)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[i] = first + i < count ? adjusted(raw.value[i], first + i) : -kInfinity;
    }
  }

  /// Calls visit(group, first token of the lane, 4 logits) for each `wanted` group from `begin` to
  /// `end`, by the warps of a block of `Warps`; all lanes of a warp take part.
  template <int Warps, typename Wanted, typename Visit>
  __device__ void walk(unsigned begin, unsigned end, Wanted wanted, Visit visit) const {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (unsigned base = begin + warp; base < end; base += 32 * Warps) {
      const unsigned lane_group = base + lane * Warps;
      unsigned left = __ballot_sync(~0u, lane_group < end && wanted(lane_group));
      unsigned unread = left;
      const auto next = [&]() -> Pack<T, 4> {
        if (unread == 0) return {};
        const unsigned group = base + (__ffs(unread) - 1) * Warps;
        unread &= unread - 1;
        return load(group);
      };
      Pack<T, 4> ahead[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) ahead[i] = next();
#pragma unroll 1
      for (; left != 0; left &= left - 1) {
        const unsigned group = base + (__ffs(left) - 1) * Warps;
        const unsigned first = group * kGroup + lane * 4;
        float x[4];
        adjust(ahead[0], first, x);
#pragma unroll
        for (int i = 0; i + 1 < kAhead; ++i) ahead[i] = ahead[i + 1];
        ahead[kAhead - 1] = next();
        visit(group, first, x);
      }
    }
  }

  /// Writes the highest logit of groups from `begin` to `end`, as ordered().
  template <int Warps>
  __device__ void find_maxima(unsigned begin, unsigned end, unsigned* maxima) const {
    const auto every = [](unsigned) { return true; };
    walk<Warps>(begin, end, every, [&](unsigned group, unsigned, const float(&x)[4]) {
      const float most = fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3]));
      const unsigned highest = warp_reduce(ordered(most), Maximum());
      if (threadIdx.x % 32 == 0) maxima[group] = highest;
    });
  }
};

}  // namespace kernwright
