// Products of matrices in shared memory by a warpgroup (wgmma), summed in float32.
// Compute capability 9.0 alone, in code for sm_90a.
#pragma once

#include <kernwright/wgmma_common.cuh>

namespace kernwright {

/// accumulators += a * b for 64 rows, N columns and 16 steps of the inner dimension, by a
/// warpgroup; without `adds`, accumulators = a * b. kTurnA (kTurnB): the rows (columns) follow each
/// other in shared memory, not the inner dimension. Thread t has rows t / 32 * 16 + t % 32 / 4 and
/// 8 more, and of every 8 columns those from t % 4 * 2 on: accumulators[i * 4 + 2 * (row's 8) +
/// column].
template <typename In, int N, bool kTurnA, bool kTurnB>
struct Products;

#define KW_SUMS_8(i)                                                                   \
  "+f"(accumulators[i]), "+f"(accumulators[i + 1]), "+f"(accumulators[i + 2]),         \
      "+f"(accumulators[i + 3]), "+f"(accumulators[i + 4]), "+f"(accumulators[i + 5]), \
      "+f"(accumulators[i + 6]), "+f"(accumulators[i + 7])
#define KW_SUMS_16(i) KW_SUMS_8(i), KW_SUMS_8(i + 8)
#define KW_SUMS_32(i) KW_SUMS_8(i), KW_SUMS_8(i + 8), KW_SUMS_8(i + 16), KW_SUMS_8(i + 24)
#define KW_SUMS_64(i) KW_SUMS_32(i), KW_SUMS_32(i + 32)
#define KW_SUMS_80(i) KW_SUMS_64(i), KW_SUMS_16(i + 64)
#define KW_SUMS_96(i) KW_SUMS_64(i), KW_SUMS_32(i + 64)
#define KW_SUMS_128(i) KW_SUMS_64(i), KW_SUMS_64(i + 64)
#define KW_NAMES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define KW_NAMES_16 KW_NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define KW_NAMES_32                                                                  \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
  "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define KW_NAMES_64                                                                    \
  KW_NAMES_32                                                                          \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define KW_NAMES_80 \
  KW_NAMES_64       \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define KW_NAMES_96                                                                    \
  KW_NAMES_64                                                                          \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define KW_NAMES_128                                                                   \
  KW_NAMES_96                                                                          \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, " \
  "%110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, "     \
  "%123, %124, %125, %126, %127"
// Operands are named by strings: strings made of macros' arguments would hide the includes of this
// header.
#define KW_PRODUCTS(TYPE, NAME, COLUMNS, SHAPE, COUNT, A, B, ADDS, TURN_A, TURN_B)                 \
  template <bool kTurnA, bool kTurnB>                                                              \
  struct Products<TYPE, COLUMNS, kTurnA, kTurnB> {                                                 \
    __device__ __forceinline__ static void add(float (&accumulators)[COUNT], unsigned long long a, \
                                               unsigned long long b, int adds) {                   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " ADDS                                        \
                   ", 0;\n"                                                                        \
                   "wgmma.mma_async.sync.aligned.m64" SHAPE "k16.f32." NAME "." NAME               \
                   " {" KW_NAMES_##COUNT "}, " A ", " B ", p, 1, 1, " TURN_A ", " TURN_B ";\n}"    \
                   : KW_SUMS_##COUNT(0)                                                            \
                   : "l"(a), "l"(b), "r"(adds), "n"(int{kTurnA}), "n"(int{kTurnB}));               \
    }                                                                                              \
  };
#define KW_TYPE_PRODUCTS(TYPE, NAME)                                           \
  KW_PRODUCTS(TYPE, NAME, 16, "n16", 8, "%8", "%9", "%10", "%11", "%12")       \
  KW_PRODUCTS(TYPE, NAME, 32, "n32", 16, "%16", "%17", "%18", "%19", "%20")    \
  KW_PRODUCTS(TYPE, NAME, 64, "n64", 32, "%32", "%33", "%34", "%35", "%36")    \
  KW_PRODUCTS(TYPE, NAME, 128, "n128", 64, "%64", "%65", "%66", "%67", "%68")  \
  KW_PRODUCTS(TYPE, NAME, 160, "n160", 80, "%80", "%81", "%82", "%83", "%84")  \
  KW_PRODUCTS(TYPE, NAME, 192, "n192", 96, "%96", "%97", "%98", "%99", "%100") \
  KW_PRODUCTS(TYPE, NAME, 256, "n256", 128, "%128", "%129", "%130", "%131", "%132")

KW_TYPE_PRODUCTS(Float16, "f16")
KW_TYPE_PRODUCTS(BFloat16, "bf16")

#undef KW_TYPE_PRODUCTS
#undef KW_PRODUCTS

}  // namespace kernwright
