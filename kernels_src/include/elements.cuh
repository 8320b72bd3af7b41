// The element types of arrays on the device: their names, conversion, packs of them, and the type
// that each computes in.
#pragma once

#include <kernwright/small_floats.cuh>

namespace kernwright {

using Int8 = signed char;
using Int16 = short;
using Int32 = int;
using Int64 = long long;
using UInt8 = unsigned char;
using UInt16 = unsigned short;
using UInt32 = unsigned int;
using UInt64 = unsigned long long;
using Float32 = float;
using Float64 = double;

struct Bool {
  unsigned char value;
};

template <typename Part>
struct alignas(2 * sizeof(Part)) Complex {
  Part real, imag;
};
using Complex64 = Complex<float>;
using Complex128 = Complex<double>;

// ---- reading: every type becomes one of bool, Int64, UInt64, float, double

__device__ __forceinline__ bool widen(Bool x) { return x.value != 0; }
__device__ __forceinline__ Int64 widen(Int8 x) { return x; }
__device__ __forceinline__ Int64 widen(Int16 x) { return x; }
__device__ __forceinline__ Int64 widen(Int32 x) { return x; }
__device__ __forceinline__ Int64 widen(Int64 x) { return x; }
__device__ __forceinline__ UInt64 widen(UInt8 x) { return x; }
__device__ __forceinline__ UInt64 widen(UInt16 x) { return x; }
__device__ __forceinline__ UInt64 widen(UInt32 x) { return x; }
__device__ __forceinline__ UInt64 widen(UInt64 x) { return x; }
__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ double widen(double x) { return x; }
template <typename Bits, int E, int M, bool F>
__device__ __forceinline__ float widen(SmallFloat<Bits, E, M, F> x) {
  return to_float(x);
}
/// By one instruction, which does not keep the sign of a NaN.
__device__ __forceinline__ float widen(Float16 x) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide == wide ? wide : to_float(x);
}
/// The upper half of a float.
__device__ __forceinline__ float widen(BFloat16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}
template <typename Part>
__device__ __forceinline__ Part widen(Complex<Part> x) {
  return x.real;
}

template <typename From>
__device__ __forceinline__ bool is_nonzero(From x) {
  return widen(x) != 0;
}
template <typename Part>
__device__ __forceinline__ bool is_nonzero(Complex<Part> x) {
  return x.real != 0 || x.imag != 0;
}

template <typename Part, typename From>
__device__ __forceinline__ Part imaginary(From) {
  return 0;
}
template <typename Part, typename FromPart>
__device__ __forceinline__ Part imaginary(Complex<FromPart> x) {
  return static_cast<Part>(x.imag);
}

// ---- floating to integer: truncated; out of range as the x86 instructions that NumPy compiles to

template <typename Float>
__device__ __forceinline__ Int64 to_int64(Float x) {
  constexpr Float limit = static_cast<Float>(9223372036854775808.0);
  return x >= -limit && x < limit ? static_cast<Int64>(x) : -9223372036854775807LL - 1;
}

template <typename Float>
__device__ __forceinline__ Int32 to_int32(Float x) {
  const Int64 wide = to_int64(x);
  return wide >= -2147483648LL && wide <= 2147483647LL ? static_cast<Int32>(wide) : -2147483647 - 1;
}

template <typename Float>
__device__ __forceinline__ UInt64 to_uint64(Float x) {
  constexpr Float limit = static_cast<Float>(9223372036854775808.0);
  if (!(x >= limit)) return static_cast<UInt64>(to_int64(x));
  return static_cast<UInt64>(to_int64(x - limit)) ^ 0x8000000000000000ULL;
}

template <typename To>
struct Truncate {
  template <typename Float>
  __device__ static To apply(Float x) {
    return static_cast<To>(to_int32(x));
  }
};
template <>
struct Truncate<UInt32> {
  template <typename Float>
  __device__ static UInt32 apply(Float x) {
    return static_cast<UInt32>(to_int64(x));
  }
};
template <>
struct Truncate<Int64> {
  template <typename Float>
  __device__ static Int64 apply(Float x) {
    return to_int64(x);
  }
};
template <>
struct Truncate<UInt64> {
  template <typename Float>
  __device__ static UInt64 apply(Float x) {
    return to_uint64(x);
  }
};

// ---- writing

/// Integers wrap around; conversions from bool, Int64 and UInt64 are inherited.
template <typename To>
struct Convert {
  template <typename Whole>
  __device__ static To apply(Whole x) {
    return static_cast<To>(x);
  }
  __device__ static To apply(float x) { return Truncate<To>::apply(x); }
  __device__ static To apply(double x) { return Truncate<To>::apply(x); }
};
template <>
struct Convert<float> {
  template <typename Wide>
  __device__ static float apply(Wide x) {
    return static_cast<float>(x);
  }
};
template <>
struct Convert<double> {
  template <typename Wide>
  __device__ static double apply(Wide x) {
    return static_cast<double>(x);
  }
};
template <typename Bits, int E, int M, bool F>
struct Convert<SmallFloat<Bits, E, M, F>> {
  template <typename Wide>
  __device__ static SmallFloat<Bits, E, M, F> apply(Wide x) {
    return from_float<SmallFloat<Bits, E, M, F>>(round_to_odd(x));
  }
};
template <typename To, typename From>
struct Element {
  __device__ static To apply(From x) { return Convert<To>::apply(widen(x)); }
};
/// Integers of 8 and 16 bits are exact in a float.
template <typename Bits, int E, int M, bool F, typename From>
struct Element<SmallFloat<Bits, E, M, F>, From> {
  using To = SmallFloat<Bits, E, M, F>;
  __device__ static To apply(Int8 x) { return Convert<To>::apply(static_cast<float>(x)); }
  __device__ static To apply(Int16 x) { return Convert<To>::apply(static_cast<float>(x)); }
  __device__ static To apply(UInt8 x) { return Convert<To>::apply(static_cast<float>(x)); }
  __device__ static To apply(UInt16 x) { return Convert<To>::apply(static_cast<float>(x)); }
  template <typename Other>
  __device__ static To apply(Other x) {
    return Convert<To>::apply(widen(x));
  }
};
template <typename From>
struct Element<Bool, From> {
  __device__ static Bool apply(From x) { return Bool{is_nonzero(x)}; }
};
template <typename Part, typename From>
struct Element<Complex<Part>, From> {
  __device__ static Complex<Part> apply(From x) {
    return {Convert<Part>::apply(widen(x)), imaginary<Part>(x)};
  }
};

// ---- computing

/// The type of arithmetic on T: float for floats below 32 bits, bool for Bool, T itself for all
/// further types.
template <typename T>
struct ComputeTraits {
  using Type = T;
};
template <>
struct ComputeTraits<Bool> {
  using Type = bool;
};
template <typename Bits, int E, int M, bool F>
struct ComputeTraits<SmallFloat<Bits, E, M, F>> {
  using Type = float;
};
template <typename T>
using Compute = typename ComputeTraits<T>::Type;

/// Exact.
template <typename T>
__device__ __forceinline__ T to_compute(T x) {
  return x;
}
__device__ __forceinline__ bool to_compute(Bool x) { return x.value != 0; }
template <typename Bits, int E, int M, bool F>
__device__ __forceinline__ float to_compute(SmallFloat<Bits, E, M, F> x) {
  return to_float(x);
}
__device__ __forceinline__ float to_compute(Float16 x) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
}
/// The upper half of a float: a shift, where the general code would take longer than the memory.
__device__ __forceinline__ float to_compute(BFloat16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}
/// The upper half of a float16.
__device__ __forceinline__ float to_compute(Float8E5M2 x) {
  return to_compute(Float16{static_cast<unsigned short>(x.bits << 8)});
}
/// Builds a float with the code's digits and then moves the exponent; this covers subnormal
/// numbers.
__device__ __forceinline__ float to_compute(Float8E4M3 x) {
  const unsigned magnitude = x.bits & 0x7fu;
  const float moved = __uint_as_float(magnitude << 20) * exact_power2(120);
  const unsigned bits = magnitude == 0x7fu ? 0x7fc00000u : __float_as_uint(moved);
  return __uint_as_float(bits | static_cast<unsigned>(x.bits & 0x80u) << 24);
}

template <typename T>
struct FromCompute {
  __device__ static T apply(Compute<T> x) { return x; }
};
template <>
struct FromCompute<Bool> {
  __device__ static Bool apply(bool x) { return Bool{static_cast<unsigned char>(x)}; }
};
template <typename Bits, int E, int M, bool F>
struct FromCompute<SmallFloat<Bits, E, M, F>> {
  __device__ static SmallFloat<Bits, E, M, F> apply(float x) {
    return from_float<SmallFloat<Bits, E, M, F>>(x);
  }
};
template <>
struct FromCompute<Float16> {
  __device__ static Float16 apply(float x) {
    Float16 narrow;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
    return narrow;
  }
};
template <>
struct FromCompute<BFloat16> {
  __device__ static BFloat16 apply(float x) {
#if __CUDA_ARCH__ >= 800
    BFloat16 narrow;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
    return narrow;
#else
    return from_float<BFloat16>(x);
#endif
  }
};

/// Rounds to nearest, ties to even, as cast() does; a NaN may lose the sign.
template <typename T>
__device__ __forceinline__ T from_compute(Compute<T> x) {
  return FromCompute<T>::apply(x);
}

/// By one instruction, which does not keep the sign of a NaN.
template <>
struct Convert<Float16> {
  template <typename Wide>
  __device__ static Float16 apply(Wide x) {
    const float value = round_to_odd(x);
    return value == value ? from_compute<Float16>(value) : from_float<Float16>(value);
  }
};
template <>
struct Convert<BFloat16> {
  template <typename Wide>
  __device__ static BFloat16 apply(Wide x) {
    const float value = round_to_odd(x);
    return value == value ? from_compute<BFloat16>(value) : from_float<BFloat16>(value);
  }
};

/// 2 to the power of x to 2e-7 of itself, by one instruction; results below 2^-126 are 0.
__device__ __forceinline__ float short_exp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
__device__ __forceinline__ float math_exp(float x) { return expf(x); }
__device__ __forceinline__ double math_exp(double x) { return exp(x); }
/// exp(x) for results of type T, with a relative error of 1e-5 where T has 16 bits or fewer.
template <typename T>
__device__ __forceinline__ float exp_for(float x) {
  return sizeof(T) <= 2 ? short_exp2(x * 1.4426950408889634f) : math_exp(x);
}
template <typename T>
__device__ __forceinline__ double exp_for(double x) {
  return math_exp(x);
}

/// N neighbours that one load or store moves: N * sizeof(T) is at most 16 and a power of two.
template <typename T, int N>
struct alignas(N * sizeof(T)) Pack {
  T value[N];
};

/// Element j of a pack in the type that T is computed in.
template <typename T, int N>
__device__ __forceinline__ Compute<T> computed(const T (&pack)[N], int j) {
  return to_compute(pack[j]);
}
/// By one instruction, for either half of a word.
template <int N>
__device__ __forceinline__ float computed(const BFloat16 (&pack)[N], int j) {
  if constexpr (N % 2 == 0) {
    unsigned words[N / 2];
    memcpy(words, pack, sizeof(words));
    return __uint_as_float(j % 2 == 0 ? words[j / 2] << 16 : words[j / 2] & 0xffff0000u);
  } else {
    return to_compute(pack[j]);
  }
}
/// All of them.
template <typename T, int N>
__device__ __forceinline__ void unpack(Compute<T> (&to)[N], const T (&pack)[N]) {
#pragma unroll
  for (int j = 0; j < N; ++j) to[j] = computed(pack, j);
}

}  // namespace kernwright
