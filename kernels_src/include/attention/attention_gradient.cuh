// A query's data for the gradients of attention, and the weight of a query and a key once more.
#pragma once

#include <kernwright/attention.cuh>

namespace kernwright {

struct Gradients {
  const void* grad;  ///< of the result
  float* delta;      ///< for each row the sum of grad times result; the strides are those of lse
  /// The base of each row: its scores and its logarithm are relative to the base, in units of log2;
  /// null for no base.
  const float* bases;
  void *dq, *dk, *dv;
  HeadStrides grad_at, dq_at, dk_at, dv_at;
};

/// One query and head: `lse` in units of log2, infinity where no key is seen, relative to `base`.
/// Keys low <= key < high are seen.
struct QueryFacts {
  float lse, base, delta;
  int low, high;

  __device__ __forceinline__ void set(const AttentionCall& call, const Gradients& more,
                                      const Sequence& sequence, int head, int query) {
    lse = -minus_infinity();
    base = delta = 0;
    low = high = 0;
    if (query >= sequence.queries) return;
    low = sequence.first_key(call, query);
    high = sequence.end_key(call, query);
    const long long at = sequence.lse_first + query * call.lse_at.token + head * call.lse_at.head;
    if (call.lse[at] != minus_infinity()) lse = to_log2(call.lse[at]);
    if (more.bases != nullptr) base = more.bases[at];
    delta = more.delta[at];
  }
};

/// A score with all that can go into it, in units of log2, from the product of query and key;
/// `factor` becomes the derivative of the score by the scaled product. A call, as tiles of it are
/// many instructions.
template <typename T>
__device__ __noinline__ float2 bent_score(const AttentionCall& call, float slope, long long mask_at,
                                          float product, int distance) {
  float score = product * call.scale, factor = 1;
  if (call.soft_cap > 0) {
    const float bent = tanhf(score / call.soft_cap);
    score = call.soft_cap * bent;
    factor = 1.0f - bent * bent;
  }
  score = score * kLog2E - slope * fabsf(static_cast<float>(distance));
  if (call.mask_kind == kBoolMask) {
    if (static_cast<const unsigned char*>(call.mask)[mask_at] == 0) score = minus_infinity();
  } else if (call.mask_kind == kProgramMask) {
    score += to_log2(to_compute(static_cast<const T*>(call.mask)[mask_at]));
  } else if (call.mask_kind == kFloatMask) {
    score += to_log2(static_cast<const float*>(call.mask)[mask_at]);
  }
  return make_float2(score, factor);
}

/// Turns the products of a query and key (`weight`) and of gradient and value (`change`) into the
/// weight that meets the gradient, and the gradient of the scaled product.
template <typename T, int kExtras>
__device__ __forceinline__ void turn_products(const AttentionCall& call, const ScoreTerms& terms,
                                              const Sequence& sequence, const QueryFacts& facts,
                                              int batch, int head, int query, int key,
                                              float& weight, float& change) {
  if (key < facts.low || key >= facts.high) {
    weight = change = 0;
    return;
  }
  float2 score = make_float2(weight * (call.scale * kLog2E), 1);
  if constexpr (kExtras > 0) {
    const long long at = terms.mask_first + query * call.mask_query + key * call.mask_key;
    score = bent_score<T>(call, terms.slope, at, weight, query + sequence.diagonal - key);
    score.x -= facts.base;
  }
  const float whole = exp2f(score.x - facts.lse);
  float keep = 1;
  if constexpr (kExtras == 2) {
    if (call.drop_below != 0) {
      const float2 both = kept(call, batch, head, query, key / 2);
      keep = key % 2 ? both.y : both.x;
    }
  }
  weight = whole * keep;
  change = whole == 0 ? 0.0f : whole * (change * keep - facts.delta) * score.y;
}

/// The range of columns that meets rows first <= row < end: queries for keys, or keys for queries.
template <bool kForKeys>
__device__ __forceinline__ void find_columns(const AttentionCall& call, const Sequence& sequence,
                                             int first, int end, int& low, int& high) {
  low = high = 0;
  if (first >= end) return;
  if constexpr (kForKeys) {
    low = call.right < 0 ? 0 : max(0, first - sequence.diagonal - call.right);
    high = sequence.queries;
    if (call.left >= 0) high = min(high, max(0, end - sequence.diagonal + call.left));
  } else {
    low = sequence.first_key(call, first);
    high = sequence.end_key(call, end - 1);
  }
}

}  // namespace kernwright
