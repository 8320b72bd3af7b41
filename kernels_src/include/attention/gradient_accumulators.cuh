// Steps of attention's backward kernels for Hopper on their accumulators, which are registers with
// names of their own (wgmma_accumulators.cuh): so the compiler in front of ptxas has few
// instructions to care for. Rows are keys, columns are queries. Compute capability 9.0 alone.
#pragma once

#include <kernwright/attention_rows.cuh>
#include <kernwright/gradient_part.cuh>
#include <kernwright/wgmma_accumulator_rows.cuh>
#include <kernwright/wgmma_row_accumulators.cuh>

namespace kernwright {

/// The waves of accumulators: gradients of keys and of values, scores, products of the result's
/// gradient and values, weights, and gradients of queries, one wave for 64 queries. NOTE: weights
/// in the place of scores would be too much for ptxas of CUDA 13: it has products wait for each
/// other then, "due to insufficient register resources".
constexpr int kKeyAccumulators = 0, kValueAccumulators = 1, kScores = 2, kValueProducts = 3,
              kWeights = 4, kQueryAccumulators = 5;

/// Terms of scores beside scale, window and lengths: nothing, a cap, or ALiBi and a mask.
enum Extras : int { kPlain = 0, kCapped = 1, kBiased = 2 };

/// Queued: rows of 64 keys times 64 queries, both along the elements of heads. Columns of keys and
/// of queries are so many bytes apart.
template <typename T, int kWave, int kDim, int kKeyColumn, int kQueryColumn>
__device__ __forceinline__ void multiply_rows(unsigned keys, unsigned queries) {
  const unsigned long long a = matrix_descriptor(keys, kKeyColumn);
  const unsigned long long b = matrix_descriptor(queries, kQueryColumn);
#pragma unroll
  for (int k = 0; k < kDim / 16; ++k) {
    const unsigned inside = k % 4 * 32;
    AccumulatorProducts<T>::template add<64, kWave, false, false>(
        further(a, k / 4 * kKeyColumn + inside), further(b, k / 4 * kQueryColumn + inside), k > 0);
  }
  commit_products();
}

/// Queues weights or changes times 64 queries; without `adds` the products overwrite the
/// accumulators.
template <typename T, int kWave, int kDim, int kQueryColumn>
__device__ __forceinline__ void add_rows(const unsigned (&left)[4][4], unsigned queries,
                                         bool adds) {
  const unsigned long long b = matrix_descriptor(queries, kQueryColumn);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    RowAccumulatorProducts<T>::template add<kDim, kWave, true>(left[k], further(b, k * 2048),
                                                               adds || k > 0);
  }
  commit_products();
}

/// Queued: 64 queries' changes by the block's `kKeys` keys, turned, times keys.
template <typename T, int kWave, int kColumns, int kKeys>
__device__ __forceinline__ void multiply_changes(unsigned changes, unsigned keys) {
  const unsigned long long a = matrix_descriptor(changes, kKeys * 128);
  const unsigned long long b = matrix_descriptor(keys, kKeys * 128);
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    AccumulatorProducts<T>::template add<kColumns, kWave, true, true>(further(a, k * 2048),
                                                                      further(b, k * 2048), k > 0);
  }
}

/// DO(i) for every fourth of 32 accumulators, which are two columns of two rows each.
#define KW_EACH_FOUR(DO, ...) \
  DO(0, __VA_ARGS__)          \
  DO(4, __VA_ARGS__)          \
  DO(8, __VA_ARGS__)          \
  DO(12, __VA_ARGS__)         \
  DO(16, __VA_ARGS__) DO(20, __VA_ARGS__) DO(24, __VA_ARGS__) DO(28, __VA_ARGS__)

#define KW_HIDE_FOUR(i, ...)                                                                     \
  asm volatile(                                                                                  \
      "{\n.reg .u32 at;\n.reg .pred out;\n"                                                      \
      "sub.u32 at, %5, %0;\nsetp.gt.u32 out, at, %1;\n@out mov.b32 sum%4_%7, 0xff800000;\n"      \
      "sub.u32 at, %6, %0;\nsetp.gt.u32 out, at, %1;\n@out mov.b32 sum%4_%8, 0xff800000;\n"      \
      "sub.u32 at, %5, %2;\nsetp.gt.u32 out, at, %3;\n@out mov.b32 sum%4_%9, 0xff800000;\n"      \
      "sub.u32 at, %6, %2;\nsetp.gt.u32 out, at, %3;\n@out mov.b32 sum%4_%10, 0xff800000;\n}" :: \
          "r"(low[0]),                                                                           \
      "r"(length[0]), "r"(low[1]), "r"(length[1]), "n"(kScores), "n"(i * 2), "n"(i * 2 + 1),     \
      "n"(i), "n"(i + 1), "n"(i + 2), "n"(i + 3));
/// The queries of a key among 64 from `first` on: `length` behind the first one, `low`. Both are
/// relative to the first query of the thread's accumulators.
template <typename Sequence>
__device__ __forceinline__ void find_queries(const AttentionCall& call, const Sequence& sequence,
                                             int key, int first, unsigned& low, unsigned& length) {
  constexpr int kNone = 1 << 30;  // behind all queries
  const int position = key - sequence.diagonal - first;
  const int first_seen = call.right < 0 ? 0 : max(0, position - call.right);
  const int last_seen = call.left < 0 ? 64 : position + call.left;
  const bool none = key >= sequence.keys || last_seen < first_seen;
  low = (none ? kNone : first_seen) - static_cast<int>(threadIdx.x % 4) * 2;
  length = none ? 0 : last_seen - first_seen;
}
/// Scores of missing queries become -infinity, for 64 queries from `first` on.
template <typename Sequence>
__device__ __forceinline__ void hide_queries(const AttentionCall& call, const Sequence& sequence,
                                             int key, int first) {
  unsigned low[2], length[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    find_queries(call, sequence, key + 8 * r, first, low[r], length[r]);
  }
  KW_EACH_FOUR(KW_HIDE_FOUR, )
}

#define KW_DROP_FOUR(i, ...)                                                                    \
  asm volatile(                                                                                 \
      "{\n.reg .pred none;\n"                                                                   \
      "setp.eq.f32 none, sum%0_%2, 0f00000000;\n@none mov.b32 sum%1_%2, 0;\n"                   \
      "setp.eq.f32 none, sum%0_%3, 0f00000000;\n@none mov.b32 sum%1_%3, 0;\n"                   \
      "setp.eq.f32 none, sum%0_%4, 0f00000000;\n@none mov.b32 sum%1_%4, 0;\n"                   \
      "setp.eq.f32 none, sum%0_%5, 0f00000000;\n@none mov.b32 sum%1_%5, 0;\n}" ::"n"(kWeights), \
      "n"(kValueProducts), "n"(i), "n"(i + 1), "n"(i + 2), "n"(i + 3));
/// Products without a weight become 0: they may be NaN.
__device__ __forceinline__ void drop_products() { KW_EACH_FOUR(KW_DROP_FOUR, ) }

/// Steps whose results are of T.
template <typename T>
struct GradientSteps;

// The weight of the score at operand AT. With a cap, the weight times the cap's derivative: there
// scores are finite, except where weights are 0.
#define KW_WEIGHT(AT, LSE) \
  "fma.rn.f32 x, sum%4_%" AT ", %3, " LSE ";\nex2.approx.ftz.f32 sum%5_%" AT ", x;\n"
#define KW_BEND(AT)                                                                   \
  "setp.ne.f32 has, sum%5_%" AT ", 0f00000000;\nmul.f32 x, sum%4_%" AT ", sum%4_%" AT \
  ";\n"                                                                               \
  "sub.f32 x, 0f3F800000, x;\n@has mul.f32 sum%5_%" AT ", sum%5_%" AT ", x;\n"
#define KW_WEIGH(i, PAIR, END)                                                                    \
  asm volatile(                                                                                   \
      "{\n.reg .f32 x, a, b;\n.reg .pred has;\n"                                                  \
      "ld.shared.v2.f32 {a, b}, [%2 + %6];\nneg.f32 a, a;\nneg.f32 b, b;\n" KW_WEIGHT("7", "a")   \
          KW_WEIGHT("8", "b") KW_WEIGHT("9", "a")                                                 \
              KW_WEIGHT("10", "b") "cvt.rn." PAIR                                                 \
                                   ".f32 %0, sum%5_%8, sum%5_%7;\n"                               \
                                   "cvt.rn." PAIR ".f32 %1, sum%5_%10, sum%5_%9;\n" END "}"       \
      : "=r"(weights[i / 8][i % 8 / 2]), "=r"(weights[i / 8][i % 8 / 2 + 1])                      \
      : "r"(logarithms), "f"(scale), "n"(kScores), "n"(kWeights), "n"(i * 8), "n"(i), "n"(i + 1), \
        "n"(i + 2), "n"(i + 3)                                                                    \
      : "memory");
#define KW_WEIGH_PLAIN(i, PAIR) KW_WEIGH(i, PAIR, "")
#define KW_WEIGH_CAPPED(i, PAIR) \
  KW_WEIGH(i, PAIR, KW_BEND("7") KW_BEND("8") KW_BEND("9") KW_BEND("10"))
#define KW_CHANGE(i, PAIR)                                                               \
  asm volatile(                                                                          \
      "{\n.reg .f32 x, y, e, f, g, h;\nld.shared.v2.f32 {x, y}, [%2 + %5];\n"            \
      "sub.f32 e, sum%4_%6, x;\nsub.f32 f, sum%4_%7, y;\n"                               \
      "sub.f32 g, sum%4_%8, x;\nsub.f32 h, sum%4_%9, y;\n"                               \
      "mul.f32 e, sum%3_%6, e;\nmul.f32 f, sum%3_%7, f;\n"                               \
      "mul.f32 g, sum%3_%8, g;\nmul.f32 h, sum%3_%9, h;\n"                               \
      "cvt.rn." PAIR ".f32 %0, f, e;\ncvt.rn." PAIR ".f32 %1, h, g;\n}"                  \
      : "=r"(changes[i / 8][i % 8 / 2]), "=r"(changes[i / 8][i % 8 / 2 + 1])             \
      : "r"(deltas), "n"(kWeights), "n"(kValueProducts), "n"(i * 8), "n"(i), "n"(i + 1), \
        "n"(i + 2), "n"(i + 3)                                                           \
      : "memory");
#define KW_GRADIENT_STEPS(TYPE, PAIR)                                                            \
  template <>                                                                                    \
  struct GradientSteps<TYPE> {                                                                   \
    template <bool kHasCap>                                                                      \
    __device__ __forceinline__ static void weigh(unsigned (&weights)[4][4], unsigned logarithms, \
                                                 float scale) {                                  \
      if constexpr (kHasCap) {                                                                   \
        KW_EACH_FOUR(KW_WEIGH_CAPPED, PAIR)                                                      \
      } else {                                                                                   \
        KW_EACH_FOUR(KW_WEIGH_PLAIN, PAIR)                                                       \
      }                                                                                          \
    }                                                                                            \
    __device__ __forceinline__ static void change(unsigned (&changes)[4][4], unsigned deltas) {  \
      KW_EACH_FOUR(KW_CHANGE, PAIR)                                                              \
    }                                                                                            \
  };

KW_GRADIENT_STEPS(Float16, "f16x2")
KW_GRADIENT_STEPS(BFloat16, "bf16x2")

#define KW_SHARE_FOUR(i, kWave)                                                              \
  if constexpr (i < kCount) {                                                                \
    asm volatile(                                                                            \
        "st.shared.v4.b32 [%0 + %1], {sum%2_%3, sum%2_%4, sum%2_%5, sum%2_%6};" ::"r"(to),   \
        "n"(i * 512), "n"(kWave), "n"(kBegin + i), "n"(kBegin + i + 1), "n"(kBegin + i + 2), \
        "n"(kBegin + i + 3)                                                                  \
        : "memory");                                                                         \
  }
/// Accumulators, from kBegin on, go to shared memory: four of each of 128 threads follow each other
/// there.
template <int kWave, int kCount, int kBegin = 0>
__device__ __forceinline__ void share_accumulators(unsigned to) {
  KW_EACH_FOUR(KW_SHARE_FOUR, kWave)
  KW_SHARE_FOUR(32, kWave)
  KW_SHARE_FOUR(36, kWave)
  KW_SHARE_FOUR(40, kWave)
  KW_SHARE_FOUR(44, kWave)
  KW_SHARE_FOUR(48, kWave)
  KW_SHARE_FOUR(52, kWave)
  KW_SHARE_FOUR(56, kWave)
  KW_SHARE_FOUR(60, kWave)
}

/// A warp's 16 rows of a gradient through shared memory; rows behind the last key are 0, and are
/// left out behind `stored`.
template <typename T, int kWave, int kDim, int kKeyColumn>
__device__ __forceinline__ void store_gradient(float factor, unsigned char* staging, T* to,
                                               long long apart, int dim, int rows, int stored,
                                               int lane) {
  constexpr int kUnits = (kDim + 63) / 64 * 8;  // of 16 bytes
  const float both[2] = {factor, factor};
  const unsigned kept[2] = {lane / 4 < rows ? ~0u : 0, lane / 4 + 8 < rows ? ~0u : 0};
  AccumulatorRows<T>::template store<kWave, kDim / 2, kKeyColumn>(
      shared_address(staging) + swizzled(lane % 16, lane / 16), both, kept);
  __syncwarp();
#pragma unroll 1
  for (int i = lane; i < kWarpKeys * kUnits; i += 32) {
    const int row = i / kUnits, unit = i % kUnits;
    if (row >= stored || unit * 8 >= dim) continue;
    *reinterpret_cast<uint4*>(to + row * apart + unit * 8) =
        *reinterpret_cast<const uint4*>(staging + unit / 8 * kKeyColumn + swizzled(row, unit % 8));
  }
}

#undef KW_EACH_FOUR
#undef KW_HIDE_FOUR
#undef KW_DROP_FOUR
#undef KW_WEIGHT
#undef KW_BEND
#undef KW_WEIGH
#undef KW_WEIGH_PLAIN
#undef KW_WEIGH_CAPPED
#undef KW_CHANGE
#undef KW_GRADIENT_STEPS
#undef KW_SHARE_FOUR

}  // namespace kernwright
