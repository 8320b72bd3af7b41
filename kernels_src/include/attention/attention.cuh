// Shared by attention kernels: their parameter, the keys of a query, scores, running softmax.
#pragma once

#include <kernwright/elements.cuh>
#include <kernwright/philox.cuh>

namespace kernwright {

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;
constexpr long long kNoRow = -9223372036854775807LL - 1;

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }
__device__ __forceinline__ float not_a_number() { return __uint_as_float(0x7fffffffu); }
/// 2 to the power of x; subnormal results are 0.
__device__ __forceinline__ float power2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Numbers below -2^126 times log2(e) may be -infinity, which hides a key. Scores below -2^126 lie
/// on a flatter line that meets the steep line at -2^126: a mask of the lowest finite numbers stays
/// finite and keeps its order.
constexpr float kFarSlope = 0.85f, kFarOffset = 5.0420918e37f;  // (log2(e) - 0.85) * 2^126

/// A term of a score in units of log2: x * log2(e), or what stands for it far below 0.
__device__ __forceinline__ float to_log2(float x) {
  return fmaxf(x * kLog2E, fmaf(x, kFarSlope, -kFarOffset));
}
/// The natural logarithm for one in units of log2.
__device__ __forceinline__ float from_log2(float x) {
  const float lowest = x == minus_infinity() ? x : -3.402823466e38f;
  return fmaxf(fminf(x * kLn2, (x + kFarOffset) * (1 / kFarSlope)), lowest);
}

/// tanh by two instructions of the special unit: within 2e-7 of it.
__device__ __forceinline__ float quick_tanh(float x) {
  return 1.0f - __fdividef(2.0f, power2(fminf(x, 40.0f) * (2 * kLog2E)) + 1.0f);
}

/// Strides in elements; the elements of a head are contiguous.
struct HeadStrides {
  long long batch, head, token;
};

/// A weight is multiplied by kWeightScale together with the scale of the value: 16 bits then keep
/// scales of values between 3e-5 and 3e4 whole.
constexpr float kWeightScale = 256;

enum MaskKind : int { kNoMask = 0, kBoolMask = 1, kProgramMask = 2, kFloatMask = 3 };

struct AttentionCall {
  const void *q, *k, *v;
  void* out;
  float* lse;                                    ///< or null; natural logarithms
  float *partial, *peaks;                        ///< of the splits
  HeadStrides q_at, k_at, v_at, out_at, lse_at;  ///< with pages, `batch` of k and v is a page
  const int* table;                              ///< pages of each batch, or null
  long long table_row;
  const int *q_starts, *k_starts;    ///< of packed sequences, batches + 1 of each, or null
  const int *q_lengths, *k_lengths;  ///< tokens of each batch, or null
  const void* mask;
  long long mask_batch, mask_head, mask_query, mask_key;  ///< in elements
  const float *sinks, *slopes;                            ///< of each head, or null
  const float *k_scales, *v_scales;                       ///< of each head of keys, or null
  unsigned long long seed, offset;                        ///< of the dropout
  long long slopes_batch;
  const float *k_token_scales, *v_token_scales;  ///< of each token and head of keys, or null
  HeadStrides scales_at;                         ///< of token scales; with pages, `batch` is a page
  float scale, soft_cap;
  int batches, heads, kv_heads, queries, keys, dim, value_dim;
  int left, right;  ///< keys seen before and behind the query's own position; -1: all
  int bottom;       ///< the last query is at the last key, else the first at the first
  int mask_kind;
  int page_size, pages, page_limit;
  int splits, row_tiles;
  int few_queries;      ///< decode_attention takes sequences of at most so many queries; 0: none
  unsigned drop_below;  ///< weights of smaller random words are dropped; 0: none
  float keep_scale;
};

/// How many tokens a batch has, and which keys a query sees.
struct Span {
  int queries, keys, diagonal;  ///< query i is at position i + diagonal

  /// Keys that the queries from `first` to `last` see between them.
  __device__ __forceinline__ int first_key(const AttentionCall& call, int first) const {
    return call.left < 0 ? 0 : min(keys, max(0, first + diagonal - call.left));
  }
  __device__ __forceinline__ int end_key(const AttentionCall& call, int last) const {
    return call.right < 0 ? keys : min(keys, max(0, last + diagonal + call.right + 1));
  }
};

/// One sequence: the first token and the number of tokens.
struct Sequence : Span {
  long long q_first = 0, k_first = 0;  ///< elements before the first token of head 0
  long long v_first = 0, out_first = 0, lse_first = 0;
  long long q_batch, q_token = 0, k_batch, k_token = 0;

  /// Without `ragged` all batches have the arrays' tokens: the call has no starts and lengths.
  /// Batch call.batches of packed sequences is the tokens behind the last one, which see no keys.
  __device__ __forceinline__ Sequence(const AttentionCall& call, int batch, bool ragged = true) {
    queries = call.queries;
    keys = call.keys;
    const bool paged = call.table != nullptr, behind = batch == call.batches;
    if (ragged && call.q_starts != nullptr) {
      q_token = min(max(call.q_starts[batch], 0), call.queries);
      const int end = behind ? call.queries : call.q_starts[batch + 1];
      queries = static_cast<int>(min(max(end, 0), call.queries) - q_token);
    }
    if (ragged && call.k_starts != nullptr) {
      k_token = min(max(call.k_starts[batch], 0), call.keys);
      keys = static_cast<int>(min(max(call.k_starts[batch + 1], 0), call.keys) - k_token);
    }
    if (ragged && call.q_lengths != nullptr) queries = min(queries, call.q_lengths[batch]);
    if (behind) {
      keys = 0;
    } else if (ragged && call.k_lengths != nullptr) {
      keys = min(keys, call.k_lengths[batch]);
    }
    queries = max(queries, 0);
    keys = max(keys, 0);
    diagonal = call.bottom ? keys - queries : 0;
    q_batch = ragged && call.q_starts != nullptr ? 0 : batch;
    k_batch = paged || (ragged && call.k_starts != nullptr) ? 0 : batch;
    q_first = q_place(call.q_at);
    out_first = q_place(call.out_at);
    lse_first = q_place(call.lse_at);
    k_first = k_place(call.k_at);
    v_first = k_place(call.v_at);
  }
  /// Elements before the first token of head 0 in an array like the queries, or like the keys.
  __device__ __forceinline__ long long q_place(const HeadStrides& at) const {
    return q_batch * at.batch + q_token * at.token;
  }
  __device__ __forceinline__ long long k_place(const HeadStrides& at) const {
    return k_batch * at.batch + k_token * at.token;
  }
};

/// A tile of the rows of packed sequences over pages, where a token has `each` rows. All tiles are
/// numbered: the tiles of sequence i begin at starts[i] * each / rows + i, which leaves room for a
/// partial tile per sequence. The tokens behind the last sequence count as one more sequence.
struct PackedTile {
  int batch, first_row;

  __device__ __forceinline__ PackedTile(const AttentionCall& call, int tile, int rows, int each) {
    const auto first_tile = [&](int sequence) {
      const long long start = min(max(call.q_starts[sequence], 0), call.queries);
      return static_cast<int>(start * each / rows) + sequence;
    };
    int high = call.batches;
    batch = 0;
    while (batch < high) {
      const int middle = (batch + high + 1) / 2;
      if (first_tile(middle) <= tile) {
        batch = middle;
      } else {
        high = middle - 1;
      }
    }
    first_row = (tile - first_tile(batch)) * rows;
  }
  /// Whether decode_attention has the sequence: one of few queries, or the tokens behind the last.
  __device__ static __forceinline__ bool is_left_out(const AttentionCall& call, int batch,
                                                     int queries) {
    return call.few_queries > 0 && (batch == call.batches || queries <= call.few_queries);
  }
  /// Whether the call's tiles are tiles of packed sequences over pages.
  __device__ static __forceinline__ bool are_used(const AttentionCall& call) {
    return call.q_starts != nullptr && call.table != nullptr;
  }
};

/// What the scores of one query and head need. Keys low <= key < high are visible.
struct ScoreRow {
  int query = 0, head = 0, low = 0, high = 0, position = 0;
  float slope = 0;           ///< times log2(e)
  long long mask_first = 0;  ///< elements

  __device__ __forceinline__ void set(const AttentionCall& call, const Sequence& sequence,
                                      int batch, int query_, int head_) {
    query = query_;
    head = head_;
    if (query >= sequence.queries) return;  // sees nothing
    position = query + sequence.diagonal;
    low = sequence.first_key(call, query);
    high = sequence.end_key(call, query);
    if (call.slopes != nullptr) slope = call.slopes[batch * call.slopes_batch + head] * kLog2E;
    mask_first = batch * call.mask_batch + head * call.mask_head + query * call.mask_query;
  }
};

/// The terms added to the products in a batch's and head's scores.
struct ScoreTerms {
  float slope = 0;
  long long mask_first = 0;

  __device__ __forceinline__ ScoreTerms(const AttentionCall& call, int batch, int head) {
    if (call.slopes != nullptr) slope = call.slopes[batch * call.slopes_batch + head] * kLog2E;
    mask_first = batch * call.mask_batch + head * call.mask_head;
  }
};

/// The score in units of log2: scaled, capped, biased, masked; `product` is that of query and key.
/// Only for one score at a time; tiles of matrix units have finish_scores().
template <typename T>
__device__ __forceinline__ float full_score(const AttentionCall& call, const ScoreRow& row,
                                            float product, float scale, int key) {
  if (key < row.low || key >= row.high) return minus_infinity();
  float score = product * scale;
  if (call.soft_cap > 0) score = call.soft_cap * tanhf(score / call.soft_cap);
  score *= kLog2E;
  if (call.slopes != nullptr) {
    const int distance = row.position - key;
    score -= row.slope * static_cast<float>(distance < 0 ? -distance : distance);
  }
  const long long at = row.mask_first + key * call.mask_key;
  if (call.mask_kind == kBoolMask) {
    if (static_cast<const unsigned char*>(call.mask)[at] == 0) return minus_infinity();
  } else if (call.mask_kind == kProgramMask) {
    score += to_log2(to_compute(static_cast<const T*>(call.mask)[at]));
  } else if (call.mask_kind == kFloatMask) {
    score += to_log2(static_cast<const float*>(call.mask)[at]);
  }
  return score;
}

/// A call, as tiles of it are many instructions. What the weights of keys 2 * pair and 2 * pair + 1
/// are multiplied by: 0 where the dropout drops them. Query i and key j of a head take word j % 4
/// of Philox4x32-10 for the counter (j / 4, i, batch * heads + head, offset).
__device__ __noinline__ float2 kept(const AttentionCall& call, int batch, int head, int query,
                                    int pair) {
  const unsigned place = static_cast<unsigned>(batch) * call.heads + head;
  const uint4 counter =
      make_uint4(pair / 2, static_cast<unsigned>(query), place, static_cast<unsigned>(call.offset));
  const uint4 bits = philox4x32(counter, make_uint2(static_cast<unsigned>(call.seed),
                                                    static_cast<unsigned>(call.seed >> 32)));
  const bool upper = pair % 2 != 0;
  return make_float2((upper ? bits.z : bits.x) < call.drop_below ? 0.0f : call.keep_scale,
                     (upper ? bits.w : bits.y) < call.drop_below ? 0.0f : call.keep_scale);
}

/// The offset of a token's elements from the head's first: kNoRow for an invalid page. `call` has
/// the size and the number of pages.
template <typename Call>
__device__ __forceinline__ long long token_offset(const Call& call, const int* table,
                                                  const HeadStrides& at, int token) {
  if (table == nullptr) return token * at.token;
  const int page = token / call.page_size;
  const int number = page < call.pages ? table[page] : -1;
  if (number < 0 || number >= call.page_limit) return kNoRow;
  return number * at.batch + (token - page * call.page_size) * at.token;
}

/// A row's weights get one of their own for the sink, which has no value.
__device__ __forceinline__ void add_sink(float sink, float& peak, float& total) {
  if (sink == minus_infinity()) return;
  const float score = to_log2(sink), most = fmaxf(peak, score);
  total = total * power2(peak - most) + power2(score - most);
  peak = most;
}

/// The factor for accumulators of weights times values relative to `peak`: 1 / total, 0 without
/// weights. Includes sinks and scales of the values; stores the logarithm if requested.
__device__ __forceinline__ float finish_total(const AttentionCall& call, const Sequence& sequence,
                                              int head, int query, float peak, float total,
                                              bool stores_lse) {
  float scale = 1;
  if (call.sinks != nullptr) {
    const float base = peak;
    add_sink(call.sinks[head], peak, total);
    scale = base == minus_infinity() ? 0.0f : power2(base - peak);
  }
  scale = total == 0 ? 0.0f : scale / total;
  if (call.v_scales != nullptr) scale *= call.v_scales[head / (call.heads / call.kv_heads)];
  if (call.v_token_scales != nullptr) scale /= kWeightScale;
  if (stores_lse && call.lse != nullptr) {
    call.lse[sequence.lse_first + query * call.lse_at.token + head * call.lse_at.head] =
        total == 0 ? minus_infinity() : from_log2(peak) + logf(total);
  }
  return scale;
}

/// The number of a row among all splits' results.
__device__ __forceinline__ long long split_place(const AttentionCall& call, int batch, int head,
                                                 int query, int split) {
  const long long row = (static_cast<long long>(batch) * call.heads + head) * call.queries + query;
  return row * call.splits + split;
}

/// One warp's row of a split; lane l holds columns l + 32 * i.
template <int kValueDim>
__device__ __forceinline__ void store_split(const AttentionCall& call, int batch,
                                            const ScoreRow& row, int split,
                                            const float (&accumulators)[kValueDim / 32], float peak,
                                            float total) {
  const int lane = threadIdx.x % 32;
  const long long at = split_place(call, batch, row.head, row.query, split);
#pragma unroll
  for (int i = 0; i < kValueDim / 32; ++i)
    call.partial[at * kValueDim + lane + 32 * i] = accumulators[i];
  if (lane == 0) *reinterpret_cast<float2*>(call.peaks + 2 * at) = make_float2(peak, total);
}

/// One warp's row of the result; rows behind the sequence's last query are 0.
template <typename T, int kValueDim>
__device__ __forceinline__ void store_row(const AttentionCall& call, const Sequence& sequence,
                                          int head, int query,
                                          const float (&accumulators)[kValueDim / 32], float peak,
                                          float total) {
  const int lane = threadIdx.x % 32;
  const float scale = finish_total(call, sequence, head, query, peak, total, lane == 0);
  T* const out = static_cast<T*>(call.out) + sequence.out_first + query * call.out_at.token +
                 head * call.out_at.head;
#pragma unroll
  for (int i = 0; i < kValueDim / 32; ++i) {
    if (lane + 32 * i < call.value_dim)
      out[lane + 32 * i] = from_compute<T>(accumulators[i] * scale);
  }
}

}  // namespace kernwright
