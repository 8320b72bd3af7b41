// Products by a warpgroup (wgmma) of types whose operands lie along the inner dimension alone:
// float8, int8, and float32 as tf32. Compute capability 9.0 alone, in code for sm_90a.
#pragma once

#include <kernwright/wgmma.cuh>

namespace kernwright {

template <int kCount>
__device__ __forceinline__ void settle(int (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(sums[i])::"memory");
}

#define KW_WHOLE_8(i)                                                                        \
  "+r"(sums[i]), "+r"(sums[i + 1]), "+r"(sums[i + 2]), "+r"(sums[i + 3]), "+r"(sums[i + 4]), \
      "+r"(sums[i + 5]), "+r"(sums[i + 6]), "+r"(sums[i + 7])
#define KW_WHOLE_32(i) KW_WHOLE_8(i), KW_WHOLE_8(i + 8), KW_WHOLE_8(i + 16), KW_WHOLE_8(i + 24)
#define KW_WHOLE_64(i) KW_WHOLE_32(i), KW_WHOLE_32(i + 32)
#define KW_WHOLE_80(i) KW_WHOLE_64(i), KW_WHOLE_8(i + 64), KW_WHOLE_8(i + 72)
#define KW_WHOLE_96(i) KW_WHOLE_64(i), KW_WHOLE_32(i + 64)
#define KW_WHOLE_112(i) KW_WHOLE_96(i), KW_WHOLE_8(i + 96), KW_WHOLE_8(i + 104)
#define KW_WHOLE_128(i) KW_WHOLE_64(i), KW_WHOLE_64(i + 64)

/// As of 16-bit floats (wgmma.cuh), for 32 bytes of the inner dimension. Of float32 the last 13
/// bits are not read: operands are rounded to tf32 towards zero.
#define KW_K_PRODUCTS(TYPE, SUM, SUMS, NAME, SIGNS, COLUMNS, SHAPE, COUNT, A, B, ADDS)   \
  template <>                                                                            \
  struct Products<TYPE, COLUMNS, false, false> {                                         \
    __device__ __forceinline__ static void add(SUM (&sums)[COUNT], unsigned long long a, \
                                               unsigned long long b, int adds) {         \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " ADDS                              \
                   ", 0;\n"                                                              \
                   "wgmma.mma_async.sync.aligned.m64" SHAPE NAME " {" KW_NAMES_##COUNT   \
                   "}, " A ", " B ", p" SIGNS ";\n}"                                     \
                   : SUMS##_##COUNT(0)                                                   \
                   : "l"(a), "l"(b), "r"(adds));                                         \
    }                                                                                    \
  };
#define KW_K_PRODUCTS_OF(TYPE, SUM, SUMS, NAME, SIGNS)                                  \
  KW_K_PRODUCTS(TYPE, SUM, SUMS, NAME, SIGNS, 64, "n64", 32, "%32", "%33", "%34")       \
  KW_K_PRODUCTS(TYPE, SUM, SUMS, NAME, SIGNS, 128, "n128", 64, "%64", "%65", "%66")     \
  KW_K_PRODUCTS(TYPE, SUM, SUMS, NAME, SIGNS, 160, "n160", 80, "%80", "%81", "%82")     \
  KW_K_PRODUCTS(TYPE, SUM, SUMS, NAME, SIGNS, 192, "n192", 96, "%96", "%97", "%98")     \
  KW_K_PRODUCTS(TYPE, SUM, SUMS, NAME, SIGNS, 224, "n224", 112, "%112", "%113", "%114") \
  KW_K_PRODUCTS(TYPE, SUM, SUMS, NAME, SIGNS, 256, "n256", 128, "%128", "%129", "%130")

KW_K_PRODUCTS_OF(Float8E4M3, float, KW_SUMS, "k32.f32.e4m3.e4m3", ", 1, 1")
KW_K_PRODUCTS_OF(Float8E5M2, float, KW_SUMS, "k32.f32.e5m2.e5m2", ", 1, 1")
KW_K_PRODUCTS_OF(MixedE4M3E5M2, float, KW_SUMS, "k32.f32.e4m3.e5m2", ", 1, 1")
KW_K_PRODUCTS_OF(MixedE5M2E4M3, float, KW_SUMS, "k32.f32.e5m2.e4m3", ", 1, 1")
KW_K_PRODUCTS_OF(Float32, float, KW_SUMS, "k8.f32.tf32.tf32", ", 1, 1")
KW_K_PRODUCTS_OF(Int8, int, KW_WHOLE, "k32.s32.s8.s8", "")

#undef KW_K_PRODUCTS_OF
#undef KW_K_PRODUCTS

}  // namespace kernwright
