// Accumulators in registers of their own (wgmma_accumulators.cuh) leave as rows of 16-bit numbers
// in shared memory. Compute capability 9.0 alone, in code for sm_90a.
#pragma once

#include <kernwright/wgmma_accumulators.cuh>

namespace kernwright {

/// A warp's 16 rows of T: a thread's accumulators of its first row are multiplied by `by[0]` and
/// have the bits of `kept[0]`. `first` is the place of row lane % 16 and unit lane / 16 in swizzled
/// columns of 128 bytes, which are `kApart` bytes apart. They are kCount accumulators of the wave,
/// from kBegin on.
template <typename T>
struct AccumulatorRows;

#define KW_STORE_PAIRS(i, PAIR)                                                             \
  if constexpr (i < kCount) {                                                               \
    asm volatile(                                                                           \
        "{\n.reg .f32 e, f;\n.reg .b32 p, q, r, s;\n"                                       \
        "mul.f32 e, sum%5_%6, %1;\nmul.f32 f, sum%5_%7, %1;\ncvt.rn." PAIR                  \
        ".f32 p, f, e;\n"                                                                   \
        "mul.f32 e, sum%5_%8, %2;\nmul.f32 f, sum%5_%9, %2;\ncvt.rn." PAIR                  \
        ".f32 q, f, e;\n"                                                                   \
        "mul.f32 e, sum%5_%10, %1;\nmul.f32 f, sum%5_%11, %1;\ncvt.rn." PAIR                \
        ".f32 r, f, e;\n"                                                                   \
        "mul.f32 e, sum%5_%12, %2;\nmul.f32 f, sum%5_%13, %2;\ncvt.rn." PAIR                \
        ".f32 s, f, e;\n"                                                                   \
        "and.b32 p, p, %3;\nand.b32 q, q, %4;\nand.b32 r, r, %3;\nand.b32 s, s, %4;\n"      \
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {p, q, r, s};\n}" ::"r"(            \
            (first ^ i % 32 / 4 * 16) + i / 32 * kApart),                                   \
        "f"(by[0]), "f"(by[1]), "r"(kept[0]), "r"(kept[1]), "n"(kWave), "n"(kBegin + i),    \
        "n"(kBegin + i + 1), "n"(kBegin + i + 2), "n"(kBegin + i + 3), "n"(kBegin + i + 4), \
        "n"(kBegin + i + 5), "n"(kBegin + i + 6), "n"(kBegin + i + 7)                       \
        : "memory");                                                                        \
  }
#define KW_STORE_ALL(TYPE, PAIR)                                                       \
  template <>                                                                          \
  struct AccumulatorRows<TYPE> {                                                       \
    template <int kWave, int kCount, int kApart, int kBegin = 0>                       \
    __device__ __forceinline__ static void store(unsigned first, const float (&by)[2], \
                                                 const unsigned (&kept)[2]) {          \
      KW_STORE_PAIRS(0, PAIR)                                                          \
      KW_STORE_PAIRS(8, PAIR)                                                          \
      KW_STORE_PAIRS(16, PAIR)                                                         \
      KW_STORE_PAIRS(24, PAIR)                                                         \
      KW_STORE_PAIRS(32, PAIR)                                                         \
      KW_STORE_PAIRS(40, PAIR)                                                         \
      KW_STORE_PAIRS(48, PAIR)                                                         \
      KW_STORE_PAIRS(56, PAIR)                                                         \
      KW_STORE_PAIRS(64, PAIR)                                                         \
      KW_STORE_PAIRS(72, PAIR)                                                         \
      KW_STORE_PAIRS(80, PAIR)                                                         \
      KW_STORE_PAIRS(88, PAIR)                                                         \
      KW_STORE_PAIRS(96, PAIR)                                                         \
      KW_STORE_PAIRS(104, PAIR)                                                        \
      KW_STORE_PAIRS(112, PAIR)                                                        \
      KW_STORE_PAIRS(120, PAIR)                                                        \
    }                                                                                  \
  };

KW_STORE_ALL(Float16, "f16x2")
KW_STORE_ALL(BFloat16, "bf16x2")

#undef KW_STORE_ALL
#undef KW_STORE_PAIRS

}  // namespace kernwright
