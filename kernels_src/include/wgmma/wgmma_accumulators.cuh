// Products by a warpgroup (wgmma) whose accumulators are registers with names of their own. The
// compiler in front of ptxas does not see them: products with accumulators as operands take it most
// of its time. Compute capability 9.0 alone, in code for sm_90a.
#pragma once

#include <kernwright/wgmma_common.cuh>

namespace kernwright {

/// Declares the registers: kCount accumulators of each of kWaves waves of 64 rows. Once in a
/// kernel, in front of all branches.
template <int kWaves, int kCount>
__device__ __forceinline__ void declare_accumulators() {
  asm volatile(".reg .b32 sum%0_<%1>;" ::"n"(kWaves - 1), "n"(kCount));
  if constexpr (kWaves > 1) declare_accumulators<kWaves - 1, kCount>();
}

/// DO(i) for every eighth sum. By a macro: functions for it would take the compiler longer.
#define KW_EACH_EIGHT(DO) \
  DO(0)                   \
  DO(8)                   \
  DO(16)                  \
  DO(24) DO(32) DO(40) DO(48) DO(56) DO(64) DO(72) DO(80) DO(88) DO(96) DO(104) DO(112) DO(120)
#define KW_READ_FLOATS(i) KW_READ_EIGHT(i, "=f")
#define KW_READ_INTS(i) KW_READ_EIGHT(i, "=r")
#define KW_READ_EIGHT(i, KIND)                                                             \
  if constexpr (i < kCount) {                                                              \
    asm volatile(                                                                          \
        "mov.b32 %0, sum%8_%9;\nmov.b32 %1, sum%8_%10;\n"                                  \
        "mov.b32 %2, sum%8_%11;\nmov.b32 %3, sum%8_%12;\n"                                 \
        "mov.b32 %4, sum%8_%13;\nmov.b32 %5, sum%8_%14;\n"                                 \
        "mov.b32 %6, sum%8_%15;\nmov.b32 %7, sum%8_%16;"                                   \
        : KIND(accumulators[i]), KIND(accumulators[i + 1]), KIND(accumulators[i + 2]),     \
          KIND(accumulators[i + 3]), KIND(accumulators[i + 4]), KIND(accumulators[i + 5]), \
          KIND(accumulators[i + 6]), KIND(accumulators[i + 7])                             \
        : "n"(kWave), "n"(i), "n"(i + 1), "n"(i + 2), "n"(i + 3), "n"(i + 4), "n"(i + 5),  \
          "n"(i + 6), "n"(i + 7));                                                         \
  }
/// The accumulators of a wave, once its products have ended.
template <int kWave, int kCount>
__device__ __forceinline__ void read_accumulators(float (&accumulators)[kCount]) {
  static_assert(kCount % 8 == 0);
  KW_EACH_EIGHT(KW_READ_FLOATS)
}
template <int kWave, int kCount>
__device__ __forceinline__ void read_accumulators(int (&accumulators)[kCount]) {
  static_assert(kCount % 8 == 0);
  KW_EACH_EIGHT(KW_READ_INTS)
}

#undef KW_READ_EIGHT
#undef KW_READ_INTS
#undef KW_READ_FLOATS

#define KW_WRITE_EIGHT(i)                                                                 \
  if constexpr (i < kCount) {                                                             \
    asm volatile(                                                                         \
        "mov.b32 sum%8_%9, %0;\nmov.b32 sum%8_%10, %1;\n"                                 \
        "mov.b32 sum%8_%11, %2;\nmov.b32 sum%8_%12, %3;\n"                                \
        "mov.b32 sum%8_%13, %4;\nmov.b32 sum%8_%14, %5;\n"                                \
        "mov.b32 sum%8_%15, %6;\nmov.b32 sum%8_%16, %7;" ::"f"(accumulators[i]),          \
        "f"(accumulators[i + 1]), "f"(accumulators[i + 2]), "f"(accumulators[i + 3]),     \
        "f"(accumulators[i + 4]), "f"(accumulators[i + 5]), "f"(accumulators[i + 6]),     \
        "f"(accumulators[i + 7]), "n"(kWave), "n"(i), "n"(i + 1), "n"(i + 2), "n"(i + 3), \
        "n"(i + 4), "n"(i + 5), "n"(i + 6), "n"(i + 7));                                  \
  }
/// Accumulators that were read come back.
template <int kWave, int kCount>
__device__ __forceinline__ void write_accumulators(const float (&accumulators)[kCount]) {
  static_assert(kCount % 8 == 0);
  KW_EACH_EIGHT(KW_WRITE_EIGHT)
}

#undef KW_WRITE_EIGHT

/// The accumulators of all waves.
template <int kWave = 0, typename Accumulator, int kWaves, int kCount>
__device__ __forceinline__ void read_waves(Accumulator (&accumulators)[kWaves][kCount]) {
  read_accumulators<kWave>(accumulators[kWave]);
  if constexpr (kWave + 1 < kWaves) read_waves<kWave + 1>(accumulators);
}

/// accumulators += a * b for 64 rows, N columns and 32 bytes of the inner dimension, by a
/// warpgroup; without `adds`, accumulators = a * b. Which accumulators a thread has, and what
/// kTurnA and kTurnB mean, tells Products of wgmma.cuh. Of float32 the last 13 bits are not read:
/// operands are rounded to tf32 towards zero.
template <typename In>
struct AccumulatorProducts;

// Operands are named by strings: strings made of macros' arguments would hide the includes of this
// header.
#define KW_NAME_LIST_32                                                               \
  "sum%0_0, sum%0_1, sum%0_2, sum%0_3, sum%0_4, sum%0_5, sum%0_6, sum%0_7, sum%0_8, " \
  "sum%0_9, sum%0_10, sum%0_11, sum%0_12, sum%0_13, sum%0_14, sum%0_15, sum%0_16, "   \
  "sum%0_17, sum%0_18, sum%0_19, sum%0_20, sum%0_21, sum%0_22, sum%0_23, sum%0_24, "  \
  "sum%0_25, sum%0_26, sum%0_27, sum%0_28, sum%0_29, sum%0_30, sum%0_31"
#define KW_NAME_LIST_40                                                      \
  KW_NAME_LIST_32                                                            \
  ", sum%0_32, sum%0_33, sum%0_34, sum%0_35, sum%0_36, sum%0_37, sum%0_38, " \
  "sum%0_39"
#define KW_NAME_LIST_48                                                      \
  KW_NAME_LIST_40                                                            \
  ", sum%0_40, sum%0_41, sum%0_42, sum%0_43, sum%0_44, sum%0_45, sum%0_46, " \
  "sum%0_47"
#define KW_NAME_LIST_64                                                              \
  KW_NAME_LIST_32                                                                    \
  ", "                                                                               \
  "sum%0_32, sum%0_33, sum%0_34, sum%0_35, sum%0_36, sum%0_37, sum%0_38, sum%0_39, " \
  "sum%0_40, sum%0_41, sum%0_42, sum%0_43, sum%0_44, sum%0_45, sum%0_46, sum%0_47, " \
  "sum%0_48, sum%0_49, sum%0_50, sum%0_51, sum%0_52, sum%0_53, sum%0_54, sum%0_55, " \
  "sum%0_56, sum%0_57, sum%0_58, sum%0_59, sum%0_60, sum%0_61, sum%0_62, sum%0_63"
#define KW_NAME_LIST_80                                                              \
  KW_NAME_LIST_64                                                                    \
  ", "                                                                               \
  "sum%0_64, sum%0_65, sum%0_66, sum%0_67, sum%0_68, sum%0_69, sum%0_70, sum%0_71, " \
  "sum%0_72, sum%0_73, sum%0_74, sum%0_75, sum%0_76, sum%0_77, sum%0_78, sum%0_79"
#define KW_NAME_LIST_88                                                      \
  KW_NAME_LIST_80                                                            \
  ", sum%0_80, sum%0_81, sum%0_82, sum%0_83, sum%0_84, sum%0_85, sum%0_86, " \
  "sum%0_87"
#define KW_NAME_LIST_96                                                              \
  KW_NAME_LIST_80                                                                    \
  ", "                                                                               \
  "sum%0_80, sum%0_81, sum%0_82, sum%0_83, sum%0_84, sum%0_85, sum%0_86, sum%0_87, " \
  "sum%0_88, sum%0_89, sum%0_90, sum%0_91, sum%0_92, sum%0_93, sum%0_94, sum%0_95"
#define KW_NAME_LIST_112                                                                 \
  KW_NAME_LIST_96                                                                        \
  ", "                                                                                   \
  "sum%0_96, sum%0_97, sum%0_98, sum%0_99, sum%0_100, sum%0_101, sum%0_102, sum%0_103, " \
  "sum%0_104, sum%0_105, sum%0_106, sum%0_107, sum%0_108, sum%0_109, sum%0_110, sum%0_111"
#define KW_NAME_LIST_128                                                                     \
  KW_NAME_LIST_112                                                                           \
  ", "                                                                                       \
  "sum%0_112, sum%0_113, sum%0_114, sum%0_115, sum%0_116, sum%0_117, sum%0_118, sum%0_119, " \
  "sum%0_120, sum%0_121, sum%0_122, sum%0_123, sum%0_124, sum%0_125, sum%0_126, sum%0_127"
#define KW_PRODUCT(COLUMNS, SHAPE, COUNT, KIND, ENDS)                           \
  if constexpr (N == COLUMNS) {                                                 \
    asm volatile(                                                               \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\n"                             \
        "wgmma.mma_async.sync.aligned.m64" SHAPE KIND " {" KW_NAME_LIST_##COUNT \
        "}, %1, %2, p" ENDS ";\n}" ::"n"(kWave),                                \
        "l"(a), "l"(b), "r"(adds), "n"(int{kTurnA}), "n"(int{kTurnB}));         \
  }
#define KW_PRODUCTS(TYPE, KIND, ENDS)                                                      \
  template <>                                                                              \
  struct AccumulatorProducts<TYPE> {                                                       \
    template <int N, int kWave, bool kTurnA, bool kTurnB>                                  \
    __device__ __forceinline__ static void add(unsigned long long a, unsigned long long b, \
                                               int adds) {                                 \
      KW_PRODUCT(64, "n64", 32, KIND, ENDS)                                                \
      KW_PRODUCT(80, "n80", 40, KIND, ENDS)                                                \
      KW_PRODUCT(96, "n96", 48, KIND, ENDS)                                                \
      KW_PRODUCT(128, "n128", 64, KIND, ENDS)                                              \
      KW_PRODUCT(160, "n160", 80, KIND, ENDS)                                              \
      KW_PRODUCT(176, "n176", 88, KIND, ENDS)                                              \
      KW_PRODUCT(192, "n192", 96, KIND, ENDS)                                              \
      KW_PRODUCT(224, "n224", 112, KIND, ENDS)                                             \
      KW_PRODUCT(256, "n256", 128, KIND, ENDS)                                             \
    }                                                                                      \
  };

KW_PRODUCTS(Float16, "k16.f32.f16.f16", ", 1, 1, %4, %5")
KW_PRODUCTS(BFloat16, "k16.f32.bf16.bf16", ", 1, 1, %4, %5")
KW_PRODUCTS(Float8E4M3, "k32.f32.e4m3.e4m3", ", 1, 1")
KW_PRODUCTS(Float8E5M2, "k32.f32.e5m2.e5m2", ", 1, 1")
KW_PRODUCTS(MixedE4M3E5M2, "k32.f32.e4m3.e5m2", ", 1, 1")
KW_PRODUCTS(MixedE5M2E4M3, "k32.f32.e5m2.e4m3", ", 1, 1")
KW_PRODUCTS(Float32, "k8.f32.tf32.tf32", ", 1, 1")
KW_PRODUCTS(Int8, "k32.s32.s8.s8", "")

#undef KW_PRODUCTS
#undef KW_PRODUCT

}  // namespace kernwright
