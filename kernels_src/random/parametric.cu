// Random numbers whose parameters may differ from element to element.
#include <kernwright/random_continuous.cuh>
#include <kernwright/random_discrete.cuh>
#include <kernwright/random_fills.cuh>

using namespace kernwright;

constexpr int kMostParameters = 4;

/// Each parameter is a value, or an array with an element or none for each number.
struct ParameterValues {
  const double* array[kMostParameters];
  double value[kMostParameters];

  __device__ void read(UInt64 i, double* values) const {
#pragma unroll
    for (int k = 0; k < kMostParameters; ++k) {
      values[k] = array[k] != nullptr ? array[k][i] : value[k];
    }
  }
};

/// Real numbers, rounded to T once.
template <typename Kind, typename T>
struct Continuous {
  __device__ static T draw(UInt64 seed, UInt64 offset, UInt64 i, const double* p) {
    return from_compute<T>(Kind::template draw<Compute<T>>(Source{seed, offset + i}, p));
  }
};
/// Draws whole numbers; a number beyond T becomes the largest of T.
template <typename Kind, typename T>
struct Discrete {
  __device__ static T draw(UInt64 seed, UInt64 offset, UInt64 i, const double* p) {
    constexpr Int64 kLargest = sizeof(T) == 4 ? 0x7fffffffLL : 0x7fffffffffffffffLL;
    return static_cast<T>(min(Kind::draw(Source{seed, offset + i}, p), kLargest));
  }
};

template <template <typename> class Kind, typename T>
__device__ __forceinline__ T drawn_by_fill(UInt64 seed, UInt64 offset, UInt64 i,
                                           const Parameters& parameters) {
  constexpr UInt64 kEach = Kind<T>::kEach;
  T value[kEach];
  Kind<T>::draw(seed, offset + i / kEach, parameters, value);
  T result = value[0];
#pragma unroll
  for (int k = 1; k < Kind<T>::kEach; ++k) {
    if (i % kEach == k) result = value[k];
  }
  return result;
}

/// The numbers that random_fill would make with these parameters.
template <template <typename> class Kind, typename T>
struct Filled {
  __device__ static T draw(UInt64 seed, UInt64 offset, UInt64 i, const double* p) {
    return drawn_by_fill<Kind, T>(seed, offset, i, Parameters{p[0], p[1], 0, 0});
  }
};
/// Draws where p[1], or p[0] for one parameter, must not be negative.
template <template <typename> class Kind, typename T, int kScale>
struct Scaled {
  __device__ static T draw(UInt64 seed, UInt64 offset, UInt64 i, const double* p) {
    if (!(p[kScale] >= 0)) return from_compute<T>(quiet_nan<Compute<T>>());
    return Filled<Kind, T>::draw(seed, offset, i, p);
  }
};
template <typename T>
struct UniformDraw {
  __device__ static T draw(UInt64 seed, UInt64 offset, UInt64 i, const double* p) {
    if (!(p[0] <= p[1])) return from_compute<T>(quiet_nan<Compute<T>>());
    return Filled<Uniform, T>::draw(seed, offset, i, p);
  }
};
template <typename T>
struct GammaDraw {
  __device__ static T draw(UInt64 seed, UInt64 offset, UInt64 i, const double* p) {
    if (!is_gamma_shape(p[0])) return from_compute<T>(quiet_nan<Compute<T>>());
    return Scaled<Gamma, T, 1>::draw(seed, offset, i, p);
  }
};
template <typename T>
struct BernoulliDraw {
  __device__ static T draw(UInt64 seed, UInt64 offset, UInt64 i, const double* p) {
    const double chance = p[0] > 0 ? fmin(p[0], 1.0) : 0.0;  // NaN is no chance
    const UInt64 range = static_cast<UInt64>(rint(chance * 4294967296.0));
    return drawn_by_fill<Bernoulli, T>(seed, offset, i, Parameters{0, 0, 0, range});
  }
};
/// The bits of p[0] and p[1] are the lowest number and their count, 0 for 2 to the 64.
template <typename T>
struct IntegerDraw {
  __device__ static T draw(UInt64 seed, UInt64 offset, UInt64 i, const double* p) {
    const UInt64 low = static_cast<UInt64>(__double_as_longlong(p[0]));
    const UInt64 range = static_cast<UInt64>(__double_as_longlong(p[1]));
    const Parameters parameters{0, 0, low, range};
    if (range != 0 && range <= 0x100000000ULL)
      return drawn_by_fill<Integers, T>(seed, offset, i, parameters);
    return drawn_by_fill<WideIntegers, T>(seed, offset, i, parameters);
  }
};

/// `counter`, if any, is added to `offset`.
template <typename Kind, typename T>
__global__ void random_parametric(T* out, UInt64 count, UInt64 seed, UInt64 offset,
                                  const UInt64* counter, const ParameterValues parameters) {
  if (counter != nullptr) offset += *counter;
  const UInt64 step = static_cast<UInt64>(gridDim.x) * blockDim.x;
  for (UInt64 i = static_cast<UInt64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    double p[kMostParameters];
    parameters.read(i, p);
    out[i] = Kind::draw(seed, offset, i, p);
  }
}

/// How often each of the outcomes came in trials[row] trials, by binomial numbers of what is left.
/// A row of chances that holds a negative number or NaN, or only zeros, gives kNoNumber. T is
/// Int64: compiles of other kernels of this text leave a template out, and this one is large.
template <typename T>
__global__ void random_multinomial(T* out, UInt64 rows, UInt64 outcomes, UInt64 seed, UInt64 offset,
                                   const UInt64* counter, const double* chances, UInt64 chance_step,
                                   const ParameterValues trials) {
  if (counter != nullptr) offset += *counter;
  const UInt64 step = static_cast<UInt64>(gridDim.x) * blockDim.x;
  for (UInt64 row = static_cast<UInt64>(blockIdx.x) * blockDim.x + threadIdx.x; row < rows;
       row += step) {
    double p[kMostParameters];
    trials.read(row, p);
    const double* chance = chances + row * chance_step;
    double rest = 0;
    UInt64 last = 0;  // the last possible outcome: it takes the rest
    bool valid = p[0] >= 0 && p[0] <= 9.2e18;
    for (UInt64 k = 0; k < outcomes; ++k) {
      valid = valid && chance[k] >= 0;
      rest += chance[k];
      if (chance[k] > 0) last = k;
    }
    valid = valid && rest > 0 && rest < 1e300;
    Source at{seed, offset + row};
    double left = valid ? floor(p[0]) : 0;
    for (UInt64 k = 0; k < outcomes; ++k) {
      double taken = k == last ? left : 0;
      if (k < last) taken = valid ? binomial_number(at, left, fmin(chance[k] / rest, 1.0)) : 0;
      out[row * outcomes + k] = valid ? static_cast<T>(taken) : kNoNumber;
      left -= taken;
      rest -= chance[k];
    }
  }
}
