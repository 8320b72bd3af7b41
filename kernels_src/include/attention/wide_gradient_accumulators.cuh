// Steps of attention's backward kernel for Hopper and heads above 128 on the accumulators: one
// warpgroup computes weights, a second warpgroup changes of scores, as in
// gradient_accumulators.cuh. Compute capability 9.0 alone.
#pragma once

#include <kernwright/gradient_accumulators.cuh>

namespace kernwright {

/// The accumulators of a warpgroup in 64 registers each: 128 columns of the gradient, the columns
/// behind, products of 64 keys and 64 queries (kScores), and 64 columns of the queries' gradient.
constexpr int kFirstAccumulators = 0, kFurtherAccumulators = 1, kQueryProducts = 3;
constexpr int kFirstColumns = 128;

/// Queues weights or changes times 64 queries; without `adds` the products overwrite the
/// accumulators.
template <typename T, int kDim, int kQueryColumn>
__device__ __forceinline__ void add_wide_rows(const unsigned (&left)[4][4], unsigned queries,
                                              bool adds) {
  constexpr int kFirst = kDim < kFirstColumns ? kDim : kFirstColumns;
  const unsigned long long b = matrix_descriptor(queries, kQueryColumn);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    RowAccumulatorProducts<T>::template add<kFirst, kFirstAccumulators, true>(
        left[k], further(b, k * 2048), adds || k > 0);
    if constexpr (kDim > kFirst) {
      RowAccumulatorProducts<T>::template add<kDim - kFirst, kFurtherAccumulators, true>(
          left[k], further(b, k * 2048 + kFirst / 64 * kQueryColumn), adds || k > 0);
    }
  }
  commit_products();
}

/// Weights are 2^kLift times as large, in the left operand and for the other warpgroup, which gets
/// them as float16: so the precision of 11 bits holds down to weights of 2^-28.
constexpr int kLift = 14;
constexpr float kUnlift = 1.0f / (1 << kLift);

/// DO(i) for every fourth of 32 accumulators, which are two columns of two rows each.
#define KW_EACH_FOUR(DO, ...) \
  DO(0, __VA_ARGS__)          \
  DO(4, __VA_ARGS__)          \
  DO(8, __VA_ARGS__)          \
  DO(12, __VA_ARGS__)         \
  DO(16, __VA_ARGS__) DO(20, __VA_ARGS__) DO(24, __VA_ARGS__) DO(28, __VA_ARGS__)

/// Scores of missing queries become -infinity, for 64 queries from `first` on.
template <typename Sequence>
__device__ __forceinline__ void hide_queries(float (&s)[32], const AttentionCall& call,
                                             const Sequence& sequence, int key, int first) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    unsigned low, length;
    find_queries(call, sequence, key + 8 * r, first, low, length);
#pragma unroll
    for (int i = 0; i < 32; i += 4) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        if (i * 2 + j - low > length) s[i + 2 * r + j] = minus_infinity();
      }
    }
  }
}

/// Eight products without a weight become 0: they may be NaN.
__device__ __forceinline__ void drop_products(float (&products)[8], const unsigned (&weights)[4]) {
#pragma unroll
  for (int i = 0; i < 8; i += 2) {
    if ((weights[i / 2] & 0xffffu) == 0) products[i] = 0;
    if (weights[i / 2] >> 16 == 0) products[i + 1] = 0;
  }
}

/// Steps whose results are of T.
template <typename T>
struct WideSteps;

#define KW_WEIGH(i, PAIR, SEND, BEND)                                                       \
  asm volatile(                                                                             \
      "{\n.reg .f32 x, a, b, e, f, g, h;\n.reg .pred has;\n"                                \
      "ld.shared.v2.f32 {a, b}, [%4 + %7];\nsub.f32 a, %6, a;\nsub.f32 b, %6, b;\n"         \
      "fma.rn.f32 e, %8, %5, a;\nfma.rn.f32 f, %9, %5, b;\n"                                \
      "fma.rn.f32 g, %10, %5, a;\nfma.rn.f32 h, %11, %5, b;\n"                              \
      "ex2.approx.ftz.f32 e, e;\nex2.approx.ftz.f32 f, f;\n"                                \
      "ex2.approx.ftz.f32 g, g;\nex2.approx.ftz.f32 h, h;\n"                                \
      "cvt.rn." PAIR ".f32 %0, f, e;\ncvt.rn." PAIR ".f32 %1, h, g;\n" BEND SEND "}"        \
      : "=r"(weights[i / 8][i % 8 / 2]), "=r"(weights[i / 8][i % 8 / 2 + 1]),               \
        "=r"(sent[i / 8][i % 8 / 2]), "=r"(sent[i / 8][i % 8 / 2 + 1])                      \
      : "r"(logarithms), "f"(scale), "f"(static_cast<float>(kLift)), "n"(i * 8), "f"(s[i]), \
        "f"(s[i + 1]), "f"(s[i + 2]), "f"(s[i + 3])                                         \
      : "memory");
// Capped scores send the product with the derivative of the cap. Capped scores are finite, except
// where weights are 0.
#define KW_BEND(WEIGHT, AT)                                            \
  "setp.ne.f32 has, " WEIGHT ", 0f00000000;\nmul.f32 x, %" AT ", %" AT \
  ";\nsub.f32 x, 0f3F800000, x;\n@has mul.f32 " WEIGHT ", " WEIGHT ", x;\n"
#define KW_BEND_FOUR KW_BEND("e", "8") KW_BEND("f", "9") KW_BEND("g", "10") KW_BEND("h", "11")
#define KW_SEND "cvt.rn.f16x2.f32 %2, f, e;\ncvt.rn.f16x2.f32 %3, h, g;\n"
#define KW_WEIGH_PLAIN(i, PAIR, SEND) KW_WEIGH(i, PAIR, SEND, "")
#define KW_WEIGH_CAPPED(i, PAIR, SEND) KW_WEIGH(i, PAIR, KW_SEND, KW_BEND_FOUR)
#define KW_CHANGE(PAIR)                                                                    \
  asm volatile(                                                                            \
      "{\n.reg .f32 x, y, e, f, g, h, p, q, r, s;\n.reg .b16 a, b, c, d;\n"                \
      "ld.shared.v2.f32 {x, y}, [%4];\nmul.f32 x, x, %5;\nmul.f32 y, y, %5;\n"             \
      "neg.f32 x, x;\nneg.f32 y, y;\n"                                                     \
      "mov.b32 {a, b}, %2;\nmov.b32 {c, d}, %3;\n"                                         \
      "cvt.f32.f16 p, a;\ncvt.f32.f16 q, b;\ncvt.f32.f16 r, c;\ncvt.f32.f16 s, d;\n"       \
      "fma.rn.f32 e, %6, %5, x;\nfma.rn.f32 f, %7, %5, y;\n"                               \
      "fma.rn.f32 g, %8, %5, x;\nfma.rn.f32 h, %9, %5, y;\n"                               \
      "mul.f32 e, p, e;\nmul.f32 f, q, f;\nmul.f32 g, r, g;\nmul.f32 h, s, h;\n"           \
      "cvt.rn." PAIR ".f32 %0, f, e;\ncvt.rn." PAIR ".f32 %1, h, g;\n}"                    \
      : "=r"(changes[i / 2]), "=r"(changes[i / 2 + 1])                                     \
      : "r"(weights[i / 2]), "r"(weights[i / 2 + 1]), "r"(deltas + i * 8), "f"(kUnlift),   \
        "f"(products[i]), "f"(products[i + 1]), "f"(products[i + 2]), "f"(products[i + 3]) \
      : "memory");
#define KW_WIDE_STEPS(TYPE, PAIR, SEND)                                                            \
  template <>                                                                                      \
  struct WideSteps<TYPE> {                                                                         \
    /* Scores become weights; `sent` are those for the changes, with the cap's derivative. */      \
    template <bool kHasCap>                                                                        \
    __device__ __forceinline__ static void weigh(const float (&s)[32], unsigned (&weights)[4][4],  \
                                                 unsigned (&sent)[4][4], unsigned logarithms,      \
                                                 float scale) {                                    \
      if constexpr (kHasCap) {                                                                     \
        KW_EACH_FOUR(KW_WEIGH_CAPPED, PAIR, SEND)                                                  \
      } else {                                                                                     \
        KW_EACH_FOUR(KW_WEIGH_PLAIN, PAIR, SEND)                                                   \
      }                                                                                            \
    }                                                                                              \
    /* Eight products, of 16 queries, become changes. */                                           \
    __device__ __forceinline__ static void change(unsigned (&changes)[4],                          \
                                                  const float (&products)[8],                      \
                                                  const unsigned (&weights)[4], unsigned deltas) { \
      _Pragma("unroll") for (int i = 0; i < 8; i += 4) { KW_CHANGE(PAIR) }                         \
    }                                                                                              \
  };

KW_WIDE_STEPS(Float16, "f16x2", "mov.b32 %2, %0;\nmov.b32 %3, %1;\n")
KW_WIDE_STEPS(BFloat16, "bf16x2", KW_SEND)

#define KW_SEND_FOUR(i)                                                          \
  asm volatile(                                                                  \
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0 + %2], " \
      "{sum%3_%4, sum%3_%5, sum%3_%6, sum%3_%7}, [%1];" ::"r"(to),               \
      "r"(full), "n"(i * 512), "n"(kWave), "n"(kBegin + i), "n"(kBegin + i + 1), \
      "n"(kBegin + i + 2), "n"(kBegin + i + 3)                                   \
      : "memory");
/// Sends 16 accumulators, from kBegin on, to another block's shared memory in the layout of
/// share_accumulators(). The barrier at `full`, in the receiving block, counts the bytes.
template <int kWave, int kBegin>
__device__ __forceinline__ void send_accumulators_to(unsigned to, unsigned full) {
  KW_SEND_FOUR(0)
  KW_SEND_FOUR(4)
  KW_SEND_FOUR(8)
  KW_SEND_FOUR(12)
}

#define KW_ADD_FOUR(i, STORE)                                                       \
  asm volatile(                                                                     \
      "{\n.reg .f32 a, b, c, d;\nld.shared.v4.f32 {a, b, c, d}, [%0 + %2];\n"       \
      "add.f32 a, a, sum%3_%4;\nadd.f32 b, b, sum%3_%5;\nadd.f32 c, c, sum%3_%6;\n" \
      "add.f32 d, d, sum%3_%7;\n" STORE " [%1 + %2], {a, b, c, d};\n}" ::"r"(from), \
      "l"(to), "n"(i * 512), "n"(kWave), "n"(kBegin + i), "n"(kBegin + i + 1),      \
      "n"(kBegin + i + 2), "n"(kBegin + i + 3)                                      \
      : "memory");
#define KW_ADD_FOURS(STORE) \
  KW_ADD_FOUR(0, STORE)     \
  KW_ADD_FOUR(4, STORE)     \
  KW_ADD_FOUR(8, STORE)     \
  KW_ADD_FOUR(12, STORE)
/// Adds 16 accumulators, from kBegin on, and their counterparts in shared memory, and stores the
/// accumulators in global memory, added to its contents where `adds` is true.
template <int kWave, int kBegin>
__device__ __forceinline__ void add_to_global(float* to, unsigned from, bool adds) {
  if (adds) {
    KW_ADD_FOURS("red.global.add.v4.f32")
  } else {
    KW_ADD_FOURS("st.global.v4.f32")
  }
}

#undef KW_SEND_FOUR
#undef KW_ADD_FOUR
#undef KW_ADD_FOURS
#undef KW_EACH_FOUR
#undef KW_WEIGH
#undef KW_BEND
#undef KW_BEND_FOUR
#undef KW_SEND
#undef KW_WEIGH_PLAIN
#undef KW_WEIGH_CAPPED
#undef KW_CHANGE
#undef KW_WIDE_STEPS

}  // namespace kernwright
