// The table of the host's headers. Their unused parts cost a kernel nothing.
#include "jit/source/host_headers.h"

#include <algorithm>
#include <array>

#include "base/format.h"

namespace kernwright {
namespace {

// 64-bit integers are long long, as in cuda::std: both headers together stay unambiguous. If that
// library is available, its macros are used, because it would define them again.
constexpr std::string_view kStdint = R"text(
#ifndef KERNWRIGHT_STDINT_H
#define KERNWRIGHT_STDINT_H
#if __has_include(<cuda/std/cstdint>)
#include <cuda/std/cstdint>
#else
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int8_t int_least8_t; typedef int16_t int_least16_t; typedef int32_t int_least32_t;
typedef int64_t int_least64_t; typedef uint8_t uint_least8_t; typedef uint16_t uint_least16_t;
typedef uint32_t uint_least32_t; typedef uint64_t uint_least64_t;
typedef int8_t int_fast8_t; typedef int16_t int_fast16_t; typedef int32_t int_fast32_t;
typedef int64_t int_fast64_t; typedef uint8_t uint_fast8_t; typedef uint16_t uint_fast16_t;
typedef uint32_t uint_fast32_t; typedef uint64_t uint_fast64_t;
typedef int64_t intptr_t; typedef uint64_t uintptr_t;
typedef int64_t intmax_t; typedef uint64_t uintmax_t;
#define INT8_MIN (-128)
#define INT16_MIN (-32767 - 1)
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#define INTPTR_MIN INT64_MIN
#define INTPTR_MAX INT64_MAX
#define UINTPTR_MAX UINT64_MAX
#define INTMAX_MIN INT64_MIN
#define INTMAX_MAX INT64_MAX
#define UINTMAX_MAX UINT64_MAX
#define PTRDIFF_MIN INT64_MIN
#define PTRDIFF_MAX INT64_MAX
#define SIZE_MAX UINT64_MAX
#define INT8_C(x) x
#define INT16_C(x) x
#define INT32_C(x) x
#define INT64_C(x) x##LL
#define UINT8_C(x) x
#define UINT16_C(x) x
#define UINT32_C(x) x##U
#define UINT64_C(x) x##ULL
#endif
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::int_least8_t; using ::int_least16_t; using ::int_least32_t; using ::int_least64_t;
using ::uint_least8_t; using ::uint_least16_t; using ::uint_least32_t; using ::uint_least64_t;
using ::int_fast8_t; using ::int_fast16_t; using ::int_fast32_t; using ::int_fast64_t;
using ::uint_fast8_t; using ::uint_fast16_t; using ::uint_fast32_t; using ::uint_fast64_t;
using ::intptr_t; using ::uintptr_t; using ::intmax_t; using ::uintmax_t;
}
#endif
)text";

constexpr std::string_view kInttypes = R"text(
#include <stdint.h>
#ifndef PRId64
#define PRId8 "d"
#define PRIu8 "u"
#define PRId16 "d"
#define PRIu16 "u"
#define PRId32 "d"
#define PRIu32 "u"
#define PRIx32 "x"
#define PRId64 "lld"
#define PRIi64 "lli"
#define PRIu64 "llu"
#define PRIx64 "llx"
#define PRIX64 "llX"
#endif
)text";

constexpr std::string_view kLimits = R"text(
#if __has_include(<cuda/std/cstdint>)
#include <cuda/std/climits>
#endif
#ifndef CHAR_BIT
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-9223372036854775807L - 1)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
#endif
)text";

constexpr std::string_view kFloat = R"text(
#if __has_include(<cuda/std/cstdint>)
#include <cuda/std/cfloat>
#endif
#ifndef FLT_MAX
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MAX_10_EXP 38
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define FLT_TRUE_MIN 1.401298464e-45F
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_MIN_10_EXP (-307)
#define DBL_MAX_10_EXP 308
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_TRUE_MIN 4.9406564584124654e-324
#endif
)text";

constexpr std::string_view kStddef = R"text(
#ifndef KERNWRIGHT_STDDEF_H
#define KERNWRIGHT_STDDEF_H
#ifndef offsetof
#if __CUDACC_VER_MAJOR__ > 13 || (__CUDACC_VER_MAJOR__ == 13 && __CUDACC_VER_MINOR__ >= 5)
#define offsetof(type, member) __builtin_offsetof(type, member)
#else  // NVRTC 13.0 has no such function
#define offsetof(type, member) \
  ((size_t) & reinterpret_cast<const volatile char&>(((type*)0)->member))
#endif
#endif
namespace std {
using ::size_t; using ::ptrdiff_t;
typedef decltype(nullptr) nullptr_t;
typedef struct { long long a; double b; } max_align_t;
}
#endif
)text";

// As on the host: an integer argument counts as a double; CUDA's own overloads are ambiguous there.
constexpr std::string_view kMath = R"text(
#ifndef KERNWRIGHT_MATH_H
#define KERNWRIGHT_MATH_H
#if __has_include(<cuda/std/cstdint>)
#include <cuda/std/limits>
#define INFINITY ::cuda::std::numeric_limits<float>::infinity()
#define NAN      ::cuda::std::numeric_limits<float>::quiet_NaN()
#endif
#ifndef INFINITY
#define INFINITY (__builtin_bit_cast(float, 0x7f800000))
#endif
#ifndef NAN
#define NAN (__builtin_bit_cast(float, 0x7fffffff))
#endif
#define HUGE_VALF INFINITY
#define HUGE_VAL ((double)INFINITY)
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
namespace kernwright_math {
template <class T> struct whole {};
template <> struct whole<bool> { typedef double type; };
template <> struct whole<char> { typedef double type; };
template <> struct whole<signed char> { typedef double type; };
template <> struct whole<unsigned char> { typedef double type; };
template <> struct whole<short> { typedef double type; };
template <> struct whole<unsigned short> { typedef double type; };
template <> struct whole<int> { typedef double type; };
template <> struct whole<unsigned int> { typedef double type; };
template <> struct whole<long> { typedef double type; };
template <> struct whole<unsigned long> { typedef double type; };
template <> struct whole<long long> { typedef double type; };
template <> struct whole<unsigned long long> { typedef double type; };
}
#define KERNWRIGHT_WHOLE(f) \
  template <class T> \
  __device__ inline typename kernwright_math::whole<T>::type f(T x) { return f((double)x); }
KERNWRIGHT_WHOLE(acos) KERNWRIGHT_WHOLE(acosh) KERNWRIGHT_WHOLE(asin) KERNWRIGHT_WHOLE(asinh)
KERNWRIGHT_WHOLE(atan) KERNWRIGHT_WHOLE(atanh) KERNWRIGHT_WHOLE(cbrt) KERNWRIGHT_WHOLE(ceil)
KERNWRIGHT_WHOLE(cos) KERNWRIGHT_WHOLE(cosh) KERNWRIGHT_WHOLE(erf) KERNWRIGHT_WHOLE(erfc)
KERNWRIGHT_WHOLE(exp) KERNWRIGHT_WHOLE(exp2) KERNWRIGHT_WHOLE(expm1) KERNWRIGHT_WHOLE(fabs)
KERNWRIGHT_WHOLE(floor) KERNWRIGHT_WHOLE(lgamma) KERNWRIGHT_WHOLE(log) KERNWRIGHT_WHOLE(log10)
KERNWRIGHT_WHOLE(log1p) KERNWRIGHT_WHOLE(log2) KERNWRIGHT_WHOLE(rint) KERNWRIGHT_WHOLE(round)
KERNWRIGHT_WHOLE(sin) KERNWRIGHT_WHOLE(sinh) KERNWRIGHT_WHOLE(sqrt) KERNWRIGHT_WHOLE(tan)
KERNWRIGHT_WHOLE(tanh) KERNWRIGHT_WHOLE(tgamma) KERNWRIGHT_WHOLE(trunc)
#undef KERNWRIGHT_WHOLE
#define KERNWRIGHT_WHOLE(f) \
  template <class T, class U> \
  __device__ inline decltype(typename kernwright_math::whole<T>::type() + \
                             typename kernwright_math::whole<U>::type()) f(T x, U y) { \
    return f((double)x, (double)y); \
  }
KERNWRIGHT_WHOLE(atan2) KERNWRIGHT_WHOLE(fmax) KERNWRIGHT_WHOLE(fmin) KERNWRIGHT_WHOLE(fmod)
KERNWRIGHT_WHOLE(hypot) KERNWRIGHT_WHOLE(pow)
#undef KERNWRIGHT_WHOLE
namespace std {
using ::abs; using ::acos; using ::acosh; using ::asin; using ::asinh; using ::atan; using ::atan2;
using ::atanh; using ::cbrt; using ::ceil; using ::copysign; using ::cos; using ::cosh; using ::erf;
using ::erfc; using ::exp; using ::exp2; using ::expm1; using ::fabs; using ::fdim; using ::floor;
using ::fma; using ::fmax; using ::fmin; using ::fmod; using ::frexp; using ::hypot; using ::ilogb;
using ::isfinite; using ::isinf; using ::isnan; using ::ldexp; using ::lgamma; using ::llrint;
using ::llround; using ::log; using ::log10; using ::log1p; using ::log2; using ::logb;
using ::lrint; using ::lround; using ::modf; using ::nan; using ::nearbyint; using ::nextafter;
using ::pow; using ::remainder; using ::remquo; using ::rint; using ::round; using ::scalbln;
using ::scalbn; using ::signbit; using ::sin; using ::sinh; using ::sqrt; using ::tan;
using ::tanh; using ::tgamma; using ::trunc;
using ::acosf; using ::asinf; using ::atanf; using ::atan2f; using ::ceilf; using ::cosf;
using ::coshf; using ::expf; using ::fabsf; using ::floorf; using ::fmaxf; using ::fminf;
using ::fmodf; using ::hypotf; using ::log10f; using ::logf; using ::log2f; using ::powf;
using ::roundf; using ::sinf; using ::sinhf; using ::sqrtf; using ::tanf; using ::tanhf;
using ::truncf;
}
#endif
)text";

constexpr std::string_view kStdio = "#include <stddef.h>\nnamespace std { using ::printf; }\n";
constexpr std::string_view kString =
    "#include <stddef.h>\nnamespace std { using ::memcpy; using ::memset; }\n";
constexpr std::string_view kStdlib = R"text(
#include <stddef.h>
#ifndef EXIT_SUCCESS
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
typedef unsigned int uint; typedef unsigned short ushort; typedef unsigned long ulong;
#endif
namespace std { using ::abs; using ::labs; using ::llabs; using ::malloc; using ::free; }
)text";
constexpr std::string_view kTime =
    "#include <stddef.h>\nnamespace std { using ::clock; using ::clock_t; }\n";
constexpr std::string_view kStd = "namespace std {}\n";

// NVRTC declares the types of these by itself.
constexpr std::string_view kRuntime = R"text(
#include <stdint.h>
#include <limits.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#ifndef CUDART_VERSION
#define CUDART_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
#endif
)text";
constexpr std::string_view kDriver = R"text(
#ifndef CUDA_VERSION
#define CUDA_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
typedef struct CUtensorMap_st { alignas(64) unsigned long long opaque[16]; } CUtensorMap;
typedef unsigned long long CUdeviceptr, CUtexObject, CUsurfObject;
#endif
)text";

// The header of all of it cannot be read by NVRTC: these are the parts for a block and a warp.
constexpr std::string_view kCub = R"text(
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_run_length_decode.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_load.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_store.cuh>
)text";

struct Row {
  std::string_view name;
  std::string_view text;
};

constexpr std::array kTable{
    Row{"stdint.h", kStdint},
    Row{"cstdint", kStdint},
    Row{"inttypes.h", kInttypes},
    Row{"cinttypes", kInttypes},
    Row{"limits.h", kLimits},
    Row{"climits", kLimits},
    Row{"float.h", kFloat},
    Row{"cfloat", kFloat},
    Row{"stddef.h", kStddef},
    Row{"cstddef", kStddef},
    Row{"math.h", kMath},
    Row{"cmath", kMath},
    Row{"stdio.h", kStdio},
    Row{"cstdio", kStdio},
    Row{"string.h", kString},
    Row{"memory.h", kString},
    Row{"cstring", kString},
    Row{"stdlib.h", kStdlib},
    Row{"cstdlib", kStdlib},
    Row{"time.h", kTime},
    Row{"ctime", kTime},
    Row{"assert.h", kStd},
    Row{"cassert", kStd},
    Row{"stdbool.h", kStd},
    Row{"new", kStd},
    Row{"cub/cub.cuh", kCub},
    Row{"cuda.h", kDriver},
    Row{"cuda_runtime.h", kRuntime},
    Row{"cuda_runtime_api.h", kRuntime},
    Row{"cuda_device_runtime_api.h", kRuntime},
    Row{"cuda_profiler_api.h", kRuntime},
    Row{"builtin_types.h", kStd},
    Row{"channel_descriptor.h", kStd},
    Row{"cuda_surface_types.h", kStd},
    Row{"cuda_texture_types.h", kStd},
    Row{"device_atomic_functions.h", kStd},
    Row{"device_double_functions.h", kStd},
    Row{"device_functions.h", kStd},
    Row{"device_launch_parameters.h", kStd},
    Row{"device_types.h", kStd},
    Row{"driver_types.h", kStd},
    Row{"host_config.h", kStd},
    Row{"host_defines.h", kStd},
    Row{"library_types.h", kStd},
    Row{"math_functions.h", kStd},
    Row{"sm_20_atomic_functions.h", kStd},
    Row{"sm_20_intrinsics.h", kStd},
    Row{"sm_30_intrinsics.h", kStd},
    Row{"sm_32_atomic_functions.h", kStd},
    Row{"sm_32_intrinsics.h", kStd},
    Row{"sm_35_atomic_functions.h", kStd},
    Row{"sm_35_intrinsics.h", kStd},
    Row{"sm_60_atomic_functions.h", kStd},
    Row{"sm_61_intrinsics.h", kStd},
    Row{"surface_functions.h", kStd},
    Row{"surface_indirect_functions.h", kStd},
    Row{"surface_types.h", kStd},
    Row{"texture_fetch_functions.h", kStd},
    Row{"texture_indirect_functions.h", kStd},
    Row{"texture_types.h", kStd},
    Row{"vector_functions.h", kStd},
    Row{"vector_functions.hpp", kStd},
    Row{"vector_types.h", kStd},
    Row{"crt/common_functions.h", kStd},
    Row{"crt/device_double_functions.h", kStd},
    Row{"crt/device_functions.h", kStd},
    Row{"crt/host_config.h", kStd},
    Row{"crt/host_defines.h", kStd},
    Row{"crt/math_functions.h", kStd},
};

/// Headers of the C++ library with the same name in cuda::std.
constexpr std::array<std::string_view, 35> kLibrary{"algorithm",     "array",
                                                    "atomic",        "barrier",
                                                    "bit",           "bitset",
                                                    "charconv",      "chrono",
                                                    "complex",       "concepts",
                                                    "expected",      "functional",
                                                    "execution",     "initializer_list",
                                                    "iterator",      "latch",
                                                    "limits",        "linalg",
                                                    "mdspan",        "memory",
                                                    "numbers",       "numeric",
                                                    "optional",      "random",
                                                    "ranges",        "ratio",
                                                    "semaphore",     "source_location",
                                                    "span",          "string_view",
                                                    "tuple",         "type_traits",
                                                    "utility",       "variant",
                                                    "inplace_vector"};

/// CUDA's and the library's own, '*' stands for the rest.
constexpr std::array<std::string_view, 22> kDevice{"kernwright/*",
                                                   "cooperative_groups*",
                                                   "cuda/*",
                                                   "cub/*",
                                                   "nv/*",
                                                   "thrust/*",
                                                   "cute/*",
                                                   "cutlass/*",
                                                   "crt/*",
                                                   "mma.h",
                                                   "cuda_fp16*",
                                                   "cuda_bf16*",
                                                   "cuda_fp8*",
                                                   "cuda_fp6*",
                                                   "cuda_fp4*",
                                                   "cuda_tf32.h",
                                                   "cuda_pipeline*",
                                                   "cuComplex.h",
                                                   "cuda_awbarrier*",
                                                   "math_constants.h",
                                                   "curand_*",
                                                   "cudart_platform.h"};

bool is_in_library(std::string_view name) {
  return std::find(kLibrary.begin(), kLibrary.end(), name) != kLibrary.end();
}

/// The parts of <algorithm> in older releases.
constexpr std::array<std::string_view, 14> kAlgorithms{
    "all_of",      "clamp", "copy",        "fill",   "find",        "lower_bound", "max",
    "max_element", "min",   "min_element", "minmax", "swap_ranges", "upper_bound", "find_if"};

std::string library_text(std::string_view name) {
  std::string text;
  if (name == "algorithm") {
    text = "#if !__has_include(<cuda/std/algorithm>)\n#include <cuda/std/utility>\n";
    for (const std::string_view part : kAlgorithms) {
      text += format("#include <cuda/std/__algorithm/{}.h>\n", part);
    }
    text += "#else\n";
  }
  text += format("#include <cuda/std/{}>\n", name);
  if (name == "algorithm") text += "#endif\n";
  return text + "namespace std { using namespace cuda::std; }\n";
}

}  // namespace

std::optional<std::string> host_header(std::string_view name) {
  const auto row =
      std::find_if(kTable.begin(), kTable.end(), [&](const Row& r) { return r.name == name; });
  if (row != kTable.end()) return std::string(row->text);
  if (is_in_library(name)) return library_text(name);
  return std::nullopt;
}

bool host_header_needs_library(std::string_view name) {
  return is_in_library(name) || name.starts_with("cub/");
}

bool is_device_header(std::string_view name) {
  return std::any_of(kDevice.begin(), kDevice.end(), [&](std::string_view known) {
    return known.ends_with('*') ? name.starts_with(known.substr(0, known.size() - 1))
                                : name == known;
  });
}

const std::string& host_header_texts() {
  static const std::string& all = *new std::string([] {
    std::string text;
    for (const Row& row : kTable) text.append(row.name).append("\n").append(row.text);
    for (const std::string_view name : kLibrary) text += library_text(name);
    return text;
  }());
  return all;
}

}  // namespace kernwright
