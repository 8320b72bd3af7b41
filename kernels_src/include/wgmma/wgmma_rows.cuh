// Products by a warpgroup whose left operand is in registers, and more widths of those of
// wgmma.cuh. Compute capability 9.0 alone, in code for sm_90a.
#pragma once

#include <kernwright/wgmma.cuh>

namespace kernwright {

#define KW_SUMS_40(i) KW_SUMS_32(i), KW_SUMS_8(i + 32)
#define KW_SUMS_48(i) KW_SUMS_40(i), KW_SUMS_8(i + 40)
#define KW_SUMS_88(i) KW_SUMS_80(i), KW_SUMS_8(i + 80)
#define KW_NAMES_40 KW_NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define KW_NAMES_48 KW_NAMES_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define KW_NAMES_88 KW_NAMES_80 ", %80, %81, %82, %83, %84, %85, %86, %87"

/// accumulators += a * b, where `a` are four registers of each thread: of columns t % 4 * 2 and one
/// more, of rows t / 32 * 16 + t % 32 / 4 and 8 more, then of the columns behind the first eight.
/// Accumulators are those of Products. kTurnB: the columns of b follow each other in shared memory.
template <typename In, int N, bool kTurnB>
struct RowProducts;

#define KW_PRODUCTS(TYPE, NAME, COLUMNS, SHAPE, COUNT, A, B, ADDS)                                 \
  template <>                                                                                      \
  struct Products<TYPE, COLUMNS, false, false> {                                                   \
    __device__ __forceinline__ static void add(float (&accumulators)[COUNT], unsigned long long a, \
                                               unsigned long long b, int adds) {                   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " ADDS                                        \
                   ", 0;\n"                                                                        \
                   "wgmma.mma_async.sync.aligned.m64" SHAPE "k16.f32." NAME "." NAME               \
                   " {" KW_NAMES_##COUNT "}, " A ", " B ", p, 1, 1, 0, 0;\n}"                      \
                   : KW_SUMS_##COUNT(0)                                                            \
                   : "l"(a), "l"(b), "r"(adds));                                                   \
    }                                                                                              \
  };
#define KW_ROW_PRODUCTS(TYPE, NAME, COLUMNS, SHAPE, COUNT, A, B, ADDS, TURN, KIND)           \
  template <>                                                                                \
  struct RowProducts<TYPE, COLUMNS, KIND> {                                                  \
    __device__ __forceinline__ static void add(float (&accumulators)[COUNT],                 \
                                               const unsigned (&a)[4], unsigned long long b, \
                                               int adds) {                                   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " ADDS                                  \
                   ", 0;\n"                                                                  \
                   "wgmma.mma_async.sync.aligned.m64" SHAPE "k16.f32." NAME "." NAME         \
                   " {" KW_NAMES_##COUNT "}, {" A "}, " B ", p, 1, 1, " TURN ";\n}"          \
                   : KW_SUMS_##COUNT(0)                                                      \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds),          \
                     "n"(int{KIND}));                                                        \
    }                                                                                        \
  };
#define KW_TYPE_PRODUCTS(TYPE, NAME)                                                           \
  KW_PRODUCTS(TYPE, NAME, 80, "n80", 40, "%40", "%41", "%42")                                  \
  KW_PRODUCTS(TYPE, NAME, 96, "n96", 48, "%48", "%49", "%50")                                  \
  KW_PRODUCTS(TYPE, NAME, 176, "n176", 88, "%88", "%89", "%90")                                \
  KW_ROW_PRODUCTS(TYPE, NAME, 16, "n16", 8, "%8, %9, %10, %11", "%12", "%13", "%14", false)    \
  KW_ROW_PRODUCTS(TYPE, NAME, 32, "n32", 16, "%16, %17, %18, %19", "%20", "%21", "%22", false) \
  KW_ROW_PRODUCTS(TYPE, NAME, 64, "n64", 32, "%32, %33, %34, %35", "%36", "%37", "%38", false)

KW_TYPE_PRODUCTS(Float16, "f16")
KW_TYPE_PRODUCTS(BFloat16, "bf16")

#undef KW_TYPE_PRODUCTS
#undef KW_PRODUCTS
#undef KW_ROW_PRODUCTS

}  // namespace kernwright
