// Products by a warpgroup whose left operand is in registers, with the accumulators of
// wgmma_accumulators.cuh. Compute capability 9.0 alone, in code for sm_90a.
#pragma once

#include <kernwright/wgmma_accumulators.cuh>

namespace kernwright {

/// As AccumulatorProducts, but the left operand is in four registers of each thread: of 16 bits as
/// RowProducts of wgmma_rows.cuh has them. Of a left operand's 32 columns of bytes a register has
/// four: from t % 4 * 4 on of row t / 32 * 16 + t % 32 / 4, of 8 rows more, then the same behind
/// the first 16 columns. kTurnB: the columns of b follow each other in shared memory.
template <typename In>
struct RowAccumulatorProducts;

#define KW_PRODUCT(COLUMNS, SHAPE, COUNT, KIND, ENDS)                                     \
  if constexpr (N == COLUMNS) {                                                           \
    asm volatile(                                                                         \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"                                       \
        "wgmma.mma_async.sync.aligned.m64" SHAPE KIND " {" KW_NAME_LIST_##COUNT           \
        "}, {%1, %2, %3, %4}, %5, p" ENDS ";\n}" ::"n"(kWave),                            \
        "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds), "n"(int{kTurnB})); \
  }
#define KW_PRODUCTS(TYPE, KIND, ENDS)                                                        \
  template <>                                                                                \
  struct RowAccumulatorProducts<TYPE> {                                                      \
    template <int N, int kWave, bool kTurnB>                                                 \
    __device__ __forceinline__ static void add(const unsigned (&a)[4], unsigned long long b, \
                                               int adds) {                                   \
      KW_PRODUCT(64, "n64", 32, KIND, ENDS)                                                  \
      KW_PRODUCT(96, "n96", 48, KIND, ENDS)                                                  \
      KW_PRODUCT(128, "n128", 64, KIND, ENDS)                                                \
      KW_PRODUCT(192, "n192", 96, KIND, ENDS)                                                \
      KW_PRODUCT(256, "n256", 128, KIND, ENDS)                                               \
    }                                                                                        \
  };

KW_PRODUCTS(Float16, "k16.f32.f16.f16", ", 1, 1, %7")
KW_PRODUCTS(BFloat16, "k16.f32.bf16.bf16", ", 1, 1, %7")
KW_PRODUCTS(Float8E4M3, "k32.f32.e4m3.e4m3", ", 1, 1")
KW_PRODUCTS(MixedE4M3E5M2, "k32.f32.e4m3.e5m2", ", 1, 1")

#undef KW_PRODUCTS
#undef KW_PRODUCT

#define KW_SCALE_EIGHT(i)                                                                  \
  if constexpr (i < kCount) {                                                              \
    asm volatile(                                                                          \
        "mul.f32 sum%2_%3, sum%2_%3, %0;\nmul.f32 sum%2_%4, sum%2_%4, %0;\n"               \
        "mul.f32 sum%2_%5, sum%2_%5, %1;\nmul.f32 sum%2_%6, sum%2_%6, %1;\n"               \
        "mul.f32 sum%2_%7, sum%2_%7, %0;\nmul.f32 sum%2_%8, sum%2_%8, %0;\n"               \
        "mul.f32 sum%2_%9, sum%2_%9, %1;\nmul.f32 sum%2_%10, sum%2_%10, %1;" ::"f"(by[0]), \
        "f"(by[1]), "n"(kWave), "n"(i), "n"(i + 1), "n"(i + 2), "n"(i + 3), "n"(i + 4),    \
        "n"(i + 5), "n"(i + 6), "n"(i + 7));                                               \
  }
/// Accumulators of a thread's first row are multiplied by `by[0]`, those of the other by `by[1]`.
template <int kWave, int kCount>
__device__ __forceinline__ void scale_accumulators(const float (&by)[2]) {
  static_assert(kCount % 8 == 0);
  KW_EACH_EIGHT(KW_SCALE_EIGHT)
}

#undef KW_SCALE_EIGHT

#define KW_STORE_EIGHT(i)                                                                          \
  if constexpr (i < kCount) {                                                                      \
    asm volatile(                                                                                  \
        "st.v4.b32 [%0 + %1], {sum%3_%4, sum%3_%5, sum%3_%6, sum%3_%7};\n"                         \
        "st.v4.b32 [%0 + %2], {sum%3_%8, sum%3_%9, sum%3_%10, sum%3_%11};" ::"l"(at),              \
        "n"(i * 512), "n"(i * 512 + 2048), "n"(kWave), "n"(i), "n"(i + 1), "n"(i + 2), "n"(i + 3), \
        "n"(i + 4), "n"(i + 5), "n"(i + 6), "n"(i + 7)                                             \
        : "memory");                                                                               \
  }
/// Accumulators go to memory: four of each of 128 threads follow each other there.
template <int kWave, int kCount>
__device__ __forceinline__ void store_accumulators(float4* at) {
  KW_EACH_EIGHT(KW_STORE_EIGHT)
}

#define KW_ADD_FOUR(i)                                                               \
  asm volatile(                                                                      \
      "{\n.reg .f32 a, b, c, d;\n"                                                   \
      "ld.v4.f32 {a, b, c, d}, [%0 + %1];\n"                                         \
      "add.f32 sum%2_%3, sum%2_%3, a;\nadd.f32 sum%2_%4, sum%2_%4, b;\n"             \
      "add.f32 sum%2_%5, sum%2_%5, c;\nadd.f32 sum%2_%6, sum%2_%6, d;\n}" ::"l"(at), \
      "n"((i)*512), "n"(kWave), "n"(i), "n"(i + 1), "n"(i + 2), "n"(i + 3)           \
      : "memory");
#define KW_ADD_EIGHT(i)       \
  if constexpr (i < kCount) { \
    KW_ADD_FOUR(i)            \
    KW_ADD_FOUR(i + 4)        \
  }
/// What store_accumulators() wrote is added to the accumulators.
template <int kWave, int kCount>
__device__ __forceinline__ void add_stored_accumulators(const float4* at) {
  KW_EACH_EIGHT(KW_ADD_EIGHT)
}

#undef KW_ADD_EIGHT
#undef KW_ADD_FOUR
#undef KW_STORE_EIGHT

}  // namespace kernwright
