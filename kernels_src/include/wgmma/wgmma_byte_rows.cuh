// Products by a warpgroup whose left operand is float8_e4m3fn in registers, the right one float8.
// Compute capability 9.0 alone, in code for sm_90a.
#pragma once

#include <kernwright/wgmma_k_major.cuh>
#include <kernwright/wgmma_rows.cuh>

namespace kernwright {

/// 8 rows by 16 bytes each lie in 128 bytes; `next` bytes are from one such piece to the one with
/// the next 16 bytes of the inner dimension, `below` to that with the next 8 rows.
__device__ __forceinline__ unsigned long long plain_descriptor(unsigned address, unsigned next,
                                                               unsigned below) {
  return (address & 0x3ffffu) >> 4 | static_cast<unsigned long long>(next >> 4) << 16 |
         static_cast<unsigned long long>(below >> 4) << 32;
}

/// Of a left operand's 32 columns a register has four: from t % 4 * 4 on of row t / 32 * 16 +
/// t % 32 / 4, of 8 rows more, then the same behind the first 16 columns. The type is that of
/// wgmma_k_major.cuh for both operands.
#define KW_BYTE_PRODUCTS(TYPE, NAME, COLUMNS, SHAPE, COUNT, A, B, ADDS)                      \
  template <>                                                                                \
  struct RowProducts<TYPE, COLUMNS, false> {                                                 \
    __device__ __forceinline__ static void add(float (&sums)[COUNT], const unsigned (&a)[4], \
                                               unsigned long long b, int adds) {             \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " ADDS                                  \
                   ", 0;\n"                                                                  \
                   "wgmma.mma_async.sync.aligned.m64" SHAPE "k32.f32.e4m3." NAME             \
                   " {" KW_NAMES_##COUNT "}, {" A "}, " B ", p, 1, 1;\n}"                    \
                   : KW_SUMS_##COUNT(0)                                                      \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds));         \
    }                                                                                        \
  };
#define KW_BYTE_PRODUCTS_OF(TYPE, NAME)                                               \
  KW_BYTE_PRODUCTS(TYPE, NAME, 64, "n64", 32, "%32, %33, %34, %35", "%36", "%37")     \
  KW_BYTE_PRODUCTS(TYPE, NAME, 96, "n96", 48, "%48, %49, %50, %51", "%52", "%53")     \
  KW_BYTE_PRODUCTS(TYPE, NAME, 128, "n128", 64, "%64, %65, %66, %67", "%68", "%69")   \
  KW_BYTE_PRODUCTS(TYPE, NAME, 192, "n192", 96, "%96, %97, %98, %99", "%100", "%101") \
  KW_BYTE_PRODUCTS(TYPE, NAME, 256, "n256", 128, "%128, %129, %130, %131", "%132", "%133")

KW_BYTE_PRODUCTS_OF(Float8E4M3, "e4m3")
KW_BYTE_PRODUCTS_OF(MixedE4M3E5M2, "e5m2")

#undef KW_BYTE_PRODUCTS_OF
#undef KW_BYTE_PRODUCTS

/// More widths of the products of wgmma_k_major.cuh.
#define KW_BYTE_PRODUCTS(TYPE, NAMES)                                                   \
  template <>                                                                           \
  struct Products<TYPE, 96, false, false> {                                             \
    __device__ __forceinline__ static void add(float (&sums)[48], unsigned long long a, \
                                               unsigned long long b, int adds) {        \
      asm volatile(                                                                     \
          "{\n.reg .pred p;\nsetp.ne.b32 p, %50, 0;\n"                                  \
          "wgmma.mma_async.sync.aligned.m64n96k32.f32." NAMES " {" KW_NAMES_48          \
          "}, %48, %49,"                                                                \
          " p, 1, 1;\n}"                                                                \
          : KW_SUMS_48(0)                                                               \
          : "l"(a), "l"(b), "r"(adds));                                                 \
    }                                                                                   \
  };

KW_BYTE_PRODUCTS(Float8E4M3, "e4m3.e4m3")
KW_BYTE_PRODUCTS(Float8E5M2, "e5m2.e5m2")
KW_BYTE_PRODUCTS(MixedE4M3E5M2, "e4m3.e5m2")
KW_BYTE_PRODUCTS(MixedE5M2E4M3, "e5m2.e4m3")

#undef KW_BYTE_PRODUCTS

/// Four floats as float8_e4m3fn, the first in the low byte. Those beyond 448 become 448.
__device__ __forceinline__ unsigned four_of(float a, float b, float c, float d) {
  unsigned short low, high;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(b), "f"(a));
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(d), "f"(c));
  return low | static_cast<unsigned>(high) << 16;
}

}  // namespace kernwright
