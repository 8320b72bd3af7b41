// Products by a warpgroup (wgmma) of float8, whose operands lie along the inner dimension alone.
// Compute capability 9.0 alone, in code for sm_90a.
#pragma once

#include <kernwright/wgmma.cuh>

namespace kernwright {

/// As of 16-bit floats (wgmma.cuh), for 32 bytes of the inner dimension.
#define KW_K_PRODUCTS(TYPE, NAME, COLUMNS, SHAPE, COUNT, A, B, ADDS)                       \
  template <>                                                                              \
  struct Products<TYPE, COLUMNS, false, false> {                                           \
    __device__ __forceinline__ static void add(float (&sums)[COUNT], unsigned long long a, \
                                               unsigned long long b, int adds) {           \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " ADDS                                \
                   ", 0;\n"                                                                \
                   "wgmma.mma_async.sync.aligned.m64" SHAPE NAME " {" KW_NAMES_##COUNT     \
                   "}, " A ", " B ", p, 1, 1;\n}"                                          \
                   : KW_SUMS_##COUNT(0)                                                    \
                   : "l"(a), "l"(b), "r"(adds));                                           \
    }                                                                                      \
  };
#define KW_K_PRODUCTS_OF(TYPE, NAME)                              \
  KW_K_PRODUCTS(TYPE, NAME, 64, "n64", 32, "%32", "%33", "%34")   \
  KW_K_PRODUCTS(TYPE, NAME, 128, "n128", 64, "%64", "%65", "%66") \
  KW_K_PRODUCTS(TYPE, NAME, 160, "n160", 80, "%80", "%81", "%82") \
  KW_K_PRODUCTS(TYPE, NAME, 192, "n192", 96, "%96", "%97", "%98") \
  KW_K_PRODUCTS(TYPE, NAME, 256, "n256", 128, "%128", "%129", "%130")

KW_K_PRODUCTS_OF(Float8E4M3, "k32.f32.e4m3.e4m3")
KW_K_PRODUCTS_OF(Float8E5M2, "k32.f32.e5m2.e5m2")
KW_K_PRODUCTS_OF(MixedE4M3E5M2, "k32.f32.e4m3.e5m2")
KW_K_PRODUCTS_OF(MixedE5M2E4M3, "k32.f32.e5m2.e4m3")

#undef KW_K_PRODUCTS_OF
#undef KW_K_PRODUCTS

}  // namespace kernwright
