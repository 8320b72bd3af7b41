// A warpgroup's softmax in attention: a running softmax of accumulators in wgmma's layout, and
// weights as left operands of wgmma. Compute capability 9.0 alone.
#pragma once

#include <kernwright/attention.cuh>
#include <kernwright/mbarrier.cuh>
#include <kernwright/wgmma_common.cuh>

namespace kernwright {

/// A place in a ring of stages, and the parity of the rounds.
template <int kStages>
struct Ring {
  int stage = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

/// Called by a warp: it is done with the data of a stage. NOTE: racecheck of CUDA 13 takes the
/// arrival of a lane for the reads of that lane alone, and reports the other lanes' reads where
/// ordinary stores fill the place again. There every lane has to arrive.
__device__ __forceinline__ void give_back(Mbarrier& empty, int lane) {
  __syncwarp();  // the other lanes have read, too
  if (lane == 0) empty.arrive();
}

/// The value of lane 0. The compiler then knows the value as uniform in a warp and keeps it out of
/// vector registers.
__device__ __forceinline__ int same_in_warp(int value) { return __shfl_sync(~0u, value, 0); }

/// So many threads meet at one of the block's 16 barriers, which some of them may only pass.
__device__ __forceinline__ void meet(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void let_pass(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/// The softmax of a thread's two rows: the largest score so far, before the scale, and the thread's
/// share of the sum of weights. A weight is 2^(score - peak + lift). The peak stays until a weight
/// would be above 2^8, so that most tiles need no correction of the accumulators.
template <int lift>
struct Running {
  static constexpr float kLift = lift, kSlack = 8 - lift;
  float peak[2], total[2];

  __device__ __forceinline__ Running() {
    peak[0] = peak[1] = minus_infinity();
    total[0] = total[1] = 0;
  }
  /// Scores become weights. What was summed before is multiplied by `shrink`.
  template <int kScores>
  __device__ __forceinline__ void take(float (&s)[kScores], float scale, float (&shrink)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float most[2] = {peak[r], s[2 * r]}, sums[2] = {};
#pragma unroll
      for (int i = 0; i < kScores; i += 4) {
#pragma unroll
        for (int j = 0; j < 2; ++j) most[j] = fmaxf(most[j], s[i + 2 * r + j]);
      }
      float all = fmaxf(most[0], most[1]);
      all = fmaxf(all, __shfl_xor_sync(~0u, all, 1));
      all = fmaxf(all, __shfl_xor_sync(~0u, all, 2));
      const bool grows = all > peak[r] && !((all - peak[r]) * scale <= kSlack);
      const float before = reference(r, scale);
      peak[r] = grows ? all : peak[r];
      const float base = peak[r] == minus_infinity() ? 0.0f : reference(r, scale);
      shrink[r] = grows ? power2(before - base) : 1.0f;
#pragma unroll
      for (int i = 0; i < kScores; i += 4) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          float& score = s[i + 2 * r + j];
          score = power2(fmaf(score, scale, -base));
          sums[j] += score;
        }
      }
      total[r] = total[r] * shrink[r] + (sums[0] + sums[1]);
    }
  }
  /// The logarithm, of base 2, of what weights are multiples of.
  __device__ __forceinline__ float reference(int r, float scale) const {
    return lift == 0 ? peak[r] * scale : fmaf(peak[r], scale, -kLift);
  }
  __device__ __forceinline__ float whole_total(int r) const {
    const float sum = total[r] + __shfl_xor_sync(~0u, total[r], 1);
    return sum + __shfl_xor_sync(~0u, sum, 2);
  }
};

/// Hidden keys have weight 0. Without `kBefore` no hidden key lies before the visible ones.
template <bool kBefore, int kScores>
__device__ __forceinline__ void hide_keys(float (&s)[kScores], const AttentionCall& call,
                                          const Span& span, int row, int first) {
  const int begin = first + static_cast<int>(threadIdx.x % 4) * 2;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int low = kBefore ? span.first_key(call, row + 8 * r) - begin : 0;
    const int high = span.end_key(call, row + 8 * r) - begin;
#pragma unroll
    for (int i = 0; i < kScores; i += 4) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int key = i * 2 + j;
        if ((kBefore && key < low) || key >= high) s[i + 2 * r + j] = minus_infinity();
      }
    }
  }
}

/// A mask's values, where keys are seen, make scores.
template <int kScores, typename Join>
__device__ __forceinline__ void join_mask(float (&s)[kScores], const AttentionCall& call,
                                          const Span& sequence, long long mask_first, int row,
                                          int first, Join join) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = row + 8 * r;
    const long long at = mask_first + query * call.mask_query;
    const int end = query < sequence.queries ? sequence.keys : 0;
#pragma unroll
    for (int i = 0; i < kScores; i += 4) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int key = first + i * 2 + j + static_cast<int>(threadIdx.x % 4) * 2;
        if (key < end) join(s[i + 2 * r + j], at + key * call.mask_key);
      }
    }
  }
}

/// Products become scores in units of log2, with all that can go into them but windows.
template <typename T, typename Config, int kScores>
__device__ __forceinline__ void bend_scores(float (&s)[kScores], const AttentionCall& call,
                                            const Span& sequence, const ScoreTerms& terms, int row,
                                            int first) {
  if constexpr (Config::kCap) {
    const float inner = call.scale / call.soft_cap, outer = call.soft_cap * kLog2E;
#pragma unroll
    for (float& score : s) score = quick_tanh(score * inner) * outer;
  } else {
#pragma unroll
    for (float& score : s) score *= call.scale * kLog2E;
  }
  if constexpr (Config::kSlopes) {
    const int behind = row + sequence.diagonal - first - static_cast<int>(threadIdx.x % 4) * 2;
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const int distance = behind + i / 2 % 2 * 8 - (i / 4 * 8 + i % 2);
      s[i] -= terms.slope * fabsf(static_cast<float>(distance));
    }
  }
  if constexpr (Config::kMaskKind == kBoolMask) {
    const auto* mask = static_cast<const unsigned char*>(call.mask);
    join_mask(s, call, sequence, terms.mask_first, row, first, [&](float& score, long long at) {
      if (mask[at] == 0) score = minus_infinity();
    });
  } else if constexpr (Config::kMaskKind == kProgramMask) {
    const T* mask = static_cast<const T*>(call.mask);
    join_mask(s, call, sequence, terms.mask_first, row, first,
              [&](float& score, long long at) { score += to_log2(to_compute(mask[at])); });
  } else if constexpr (Config::kMaskKind == kFloatMask) {
    const float* mask = static_cast<const float*>(call.mask);
    join_mask(s, call, sequence, terms.mask_first, row, first,
              [&](float& score, long long at) { score += to_log2(mask[at]); });
  }
}

// For accumulators with keys as rows and queries as columns.

/// Adds a mask's values to the scores of existing queries and keys.
template <typename Join>
__device__ __forceinline__ void join_mask_turned(float (&s)[32], const AttentionCall& call,
                                                 const Sequence& sequence, long long mask_first,
                                                 int key, int first, Join join) {
  const int end = sequence.queries - first - static_cast<int>(threadIdx.x % 4) * 2;
  const long long base =
      mask_first + (first + static_cast<int>(threadIdx.x % 4) * 2) * call.mask_query;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    long long at = base + (key + 8 * r) * call.mask_key;
    const int queries = key + 8 * r < sequence.keys ? end : 0;
#pragma unroll
    for (int i = 0; i < 32; i += 4) {
      if (i * 2 < queries) join(s[i + 2 * r], at);
      if (i * 2 + 1 < queries) join(s[i + 2 * r + 1], at + call.mask_query);
      at += 8 * call.mask_query;
    }
  }
}

/// Products become scores in units of log2, with ALiBi and a mask, less the `bases` of a head's
/// queries. `bases` has the strides of the logarithms, or is null.
template <typename T>
__device__ __forceinline__ void bias_scores(float (&s)[32], const AttentionCall& call,
                                            const Sequence& sequence, const ScoreTerms& terms,
                                            const float* bases, int key, int first) {
  const int ahead = first + sequence.diagonal - key + static_cast<int>(threadIdx.x % 4) * 2;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int distance = ahead + i / 4 * 8 + i % 2 - i / 2 % 2 * 8;
    s[i] = s[i] * (call.scale * kLog2E) - terms.slope * fabsf(static_cast<float>(distance));
  }
  const auto join = [&](auto take) {
    join_mask_turned(s, call, sequence, terms.mask_first, key, first, take);
  };
  if (call.mask_kind == kBoolMask) {
    const auto* mask = static_cast<const unsigned char*>(call.mask);
    join([&](float& score, long long at) {
      if (mask[at] == 0) score = minus_infinity();
    });
  } else if (call.mask_kind == kProgramMask) {
    const T* mask = static_cast<const T*>(call.mask);
    join([&](float& score, long long at) { score += to_log2(to_compute(mask[at])); });
  } else if (call.mask_kind == kFloatMask) {
    const float* mask = static_cast<const float*>(call.mask);
    join([&](float& score, long long at) { score += to_log2(mask[at]); });
  }
  if (bases == nullptr) return;
  const int begin = first + static_cast<int>(threadIdx.x % 4) * 2;
#pragma unroll
  for (int i = 0; i < 32; i += 4) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int query = begin + i * 2 + j;
      if (query >= sequence.queries) continue;
      const float base = bases[query * call.lse_at.token];
      s[i + j] -= base;
      s[i + 2 + j] -= base;
    }
  }
}

/// Weights as left operands of 16 keys each.
template <typename T, int kScores>
__device__ __forceinline__ void pack_weights(const float (&s)[kScores],
                                             unsigned (&weights)[kScores / 8][4]) {
#pragma unroll
  for (int i = 0; i < kScores / 8; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
      weights[i][j] = round_pair<T>(s[8 * i + 2 * j], s[8 * i + 2 * j + 1]);
  }
}

/// Keeps weights in place until products are done with them.
template <int kCount>
__device__ __forceinline__ void keep_weights(unsigned (&weights)[kCount][4]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) asm volatile("" : "+r"(weights[i][j])::"memory");
  }
}

/// Four 8x8 matrices of a warp's 16-bit pairs, into rows whose addresses the lanes give.
__device__ __forceinline__ void store_matrices(unsigned address, const unsigned (&pairs)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
               : "memory");
}

/// Bytes of a column of 128 bytes whose 16-byte units are swizzled.
__device__ __forceinline__ int swizzled(int row, int unit) {
  return row * 128 + ((unit ^ row) & 7) * 16;
}

}  // namespace kernwright
