// Shared by the solvers: real and complex numbers under one name, sums of a block, reflections.
#pragma once

#include <kernwright/complex_math.cuh>
#include <kernwright/reduce.cuh>

namespace kernwright {

template <typename T>
struct PartTraits {
  using Type = T;
  __device__ static T apply(T part) { return part; }
};
template <typename P>
struct PartTraits<Complex<P>> {
  using Type = P;
  __device__ static Complex<P> apply(P part) { return {part, 0}; }
};
/// float or double.
template <typename T>
using Part = typename PartTraits<T>::Type;

template <typename T>
__device__ __forceinline__ T from_real(Part<T> part) {
  return PartTraits<T>::apply(part);
}

__device__ __forceinline__ float math_conj(float x) { return x; }
__device__ __forceinline__ double math_conj(double x) { return x; }
template <typename P>
__device__ __forceinline__ Complex<P> math_conj(Complex<P> x) {
  return {x.real, -x.imag};
}
__device__ __forceinline__ float real_component(float x) { return x; }
__device__ __forceinline__ double real_component(double x) { return x; }
template <typename P>
__device__ __forceinline__ P real_component(Complex<P> x) {
  return x.real;
}
__device__ __forceinline__ float imaginary_component(float) { return 0; }
__device__ __forceinline__ double imaginary_component(double) { return 0; }
template <typename P>
__device__ __forceinline__ P imaginary_component(Complex<P> x) {
  return x.imag;
}
/// The square of the absolute value.
template <typename T>
__device__ __forceinline__ Part<T> squared_modulus(T x) {
  return real_component(x) * real_component(x) + imaginary_component(x) * imaginary_component(x);
}
/// The sum of the absolute values of the parts: as good as the absolute value to compare by.
template <typename T>
__device__ __forceinline__ Part<T> size_of(T x) {
  using M = Real<Part<T>>;
  return M::abs(real_component(x)) + M::abs(imaginary_component(x));
}
__device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
__device__ __forceinline__ double magnitude(double x) { return fabs(x); }
template <typename P>
__device__ __forceinline__ P magnitude(Complex<P> x) {
  return Real<P>::hypot(x.real, x.imag);
}

/// The distance from 1 to the next number.
template <typename P>
__device__ __forceinline__ P epsilon() {
  return sizeof(P) == 4 ? P(1.1920928955078125e-7) : P(2.220446049250313e-16);
}

/// Combines over all threads of the block, in a fixed order; each gets the result. Whole warps, all
/// threads.
template <typename T, typename Combine>
__device__ T block_total(T value, Combine combine) {
  __shared__ alignas(16) unsigned char memory[32 * sizeof(T)];
  T* const partial = reinterpret_cast<T*>(memory);
  value = warp_reduce(value, combine);
  const unsigned warps = blockDim.x / 32;
  if (warps == 1) return value;
  __syncthreads();  // an earlier call may still be read
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  T total = partial[0];
  for (unsigned warp = 1; warp < warps; ++warp) total = combine(total, partial[warp]);
  return total;
}

/// The power of two at or below the largest part of `count` numbers; 1 where all are 0 or one is
/// not finite. Numbers divided by it are neither huge nor tiny.
template <typename T>
__device__ Part<T> block_scale(const T* values, long long count) {
  using P = Part<T>;
  P largest = 0;
  for (long long i = threadIdx.x; i < count; i += blockDim.x) {
    const P size = size_of(values[i]);
    if (!(size <= largest)) largest = size;  // NaN stays
  }
  largest = block_total(largest, Maximum());
  if (!(largest > 0) || !is_finite(largest)) return 1;
  int exponent;
  P power;
  if (sizeof(P) == 4) {
    exponent = static_cast<int>(__float_as_uint(static_cast<float>(largest)) >> 23);
    exponent = exponent < 1 ? 1 : exponent > 253 ? 253 : exponent;
    power = __uint_as_float(static_cast<unsigned>(exponent) << 23);
  } else {
    exponent = static_cast<int>(__double_as_longlong(static_cast<double>(largest)) >> 52);
    exponent = exponent < 1 ? 1 : exponent > 2045 ? 2045 : exponent;
    power = static_cast<P>(__longlong_as_double(static_cast<long long>(exponent) << 52));
  }
  return power;
}

/// I - tau v v^H with v[0] = 1, whose conjugate transpose takes (alpha, rest) to (beta, 0).
template <typename T>
struct Reflection {
  T tau;         ///< 0: the identity
  T factor;      ///< v[i] = rest[i] * factor
  Part<T> beta;  ///< real
};
/// `rest` is the sum of the squares of the absolute values of the rest.
template <typename T>
__device__ Reflection<T> reflection(T alpha, Part<T> rest) {
  using P = Part<T>;
  if (rest == 0 && imaginary_component(alpha) == 0)
    return {from_real<T>(0), from_real<T>(0), real_component(alpha)};
  const P length = Real<P>::sqrt(squared_modulus(alpha) + rest);
  const P beta = real_component(alpha) > 0 ? -length : length;
  const T distance = from_real<T>(beta) - alpha;
  return {distance * (1 / beta), from_real<T>(-1) / distance, beta};
}

/// The sum of conj(a[i]) * b[i] over a warp's lanes.
template <typename T>
__device__ __forceinline__ T warp_product(const T* a, const T* b, long long count) {
  T sum = from_real<T>(0);
  for (long long i = threadIdx.x % 32; i < count; i += 32) sum = sum + math_conj(a[i]) * b[i];
  return warp_reduce(sum, Sum());
}

/// Applies I - tau v v^H to a column of `count` numbers, by one warp; v[0] counts as 1.
template <typename T>
__device__ __forceinline__ void reflect_column(const T* v, T tau, T* column, long long count) {
  const long long lane = threadIdx.x % 32;
  T sum = lane == 0 ? column[0] : from_real<T>(0);
  for (long long i = lane == 0 ? 32 : lane; i < count; i += 32)
    sum = sum + math_conj(v[i]) * column[i];
  const T factor = tau * warp_reduce(sum, Sum());
  for (long long i = lane; i < count; i += 32) {
    column[i] = column[i] - (i == 0 ? factor : v[i] * factor);
  }
}

/// Makes the numbers below column[0] the v of the reflection that clears them; column[0] stays.
/// All threads; the block is synchronised behind it.
template <typename T>
__device__ Reflection<T> make_reflection(T* column, long long count) {
  Part<T> rest = 0;
  for (long long i = 1 + threadIdx.x; i < count; i += blockDim.x)
    rest += squared_modulus(column[i]);
  rest = block_total(rest, Sum());
  const Reflection<T> made = reflection(column[0], rest);
  for (long long i = 1 + threadIdx.x; i < count; i += blockDim.x) {
    column[i] = column[i] * made.factor;
  }
  __syncthreads();
  return made;
}

/// The block's matrix in shared memory where `pool` is given, else where it lies.
template <typename T>
__device__ T* stage(T* matrix, long long count, void* pool) {
  if (pool == nullptr) return matrix;
  T* const staged = static_cast<T*>(pool);
  for (long long i = threadIdx.x; i < count; i += blockDim.x) staged[i] = matrix[i];
  __syncthreads();
  return staged;
}
template <typename T>
__device__ void unstage(T* matrix, const T* staged, long long count) {
  if (matrix == staged) return;
  __syncthreads();
  for (long long i = threadIdx.x; i < count; i += blockDim.x) matrix[i] = staged[i];
}

}  // namespace kernwright
