// Distributions that make several numbers from one block of random bits.
#pragma once

#include <kernwright/elements.cuh>
#include <kernwright/random_source.cuh>

namespace kernwright {

/// The parameters of a distribution: two reals, or the lowest of so many whole numbers.
struct Parameters {
  double a, b;
  UInt64 low, range;
};

/// In [0, 1), exact in T: with fewer bits where T has fewer.
template <typename T>
struct Unit {
  __device__ static float apply(unsigned bits) {
    constexpr int kBits = T::kMantissa + 1;
    return static_cast<float>(bits >> (32 - kBits)) * exact_power2(-kBits);
  }
};
template <>
struct Unit<float> {
  __device__ static float apply(unsigned bits) { return to_uniform(bits); }
};

// ---- distributions: kEach numbers from a block

/// From a up to and without b.
template <typename T>
struct Uniform {
  static constexpr int kEach = 4;
  __device__ static void draw(UInt64 seed, UInt64 block, const Parameters& p, T* out) {
    const uint4 bits = bits_at(seed, block);
    const float low = static_cast<float>(p.a), high = static_cast<float>(p.b);
    const float width = static_cast<float>(p.b - p.a);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      out[i] = from_compute<T>(fmaf(Unit<T>::apply(word(bits, i)), width, low));
      if (!(to_compute(out[i]) < high)) out[i] = from_compute<T>(low);  // rounded up
    }
  }
};
template <>
struct Uniform<double> {
  static constexpr int kEach = 2;
  __device__ static void draw(UInt64 seed, UInt64 block, const Parameters& p, double* out) {
    const uint4 bits = bits_at(seed, block);
    out[0] = fma(to_uniform_double(bits.x, bits.y), p.b - p.a, p.a);
    out[1] = fma(to_uniform_double(bits.z, bits.w), p.b - p.a, p.a);
    if (!(out[0] < p.b)) out[0] = p.a;
    if (!(out[1] < p.b)) out[1] = p.a;
  }
};

/// Normal numbers of mean a and standard deviation b.
template <typename T>
struct Normal {
  static constexpr int kEach = 4;
  __device__ static void draw(UInt64 seed, UInt64 block, const Parameters& p, T* out) {
    const uint4 bits = bits_at(seed, block);
    const float mean = static_cast<float>(p.a), deviation = static_cast<float>(p.b);
    const float2 one = to_normal(bits.x, bits.y), two = to_normal(bits.z, bits.w);
    out[0] = from_compute<T>(fmaf(one.x, deviation, mean));
    out[1] = from_compute<T>(fmaf(one.y, deviation, mean));
    out[2] = from_compute<T>(fmaf(two.x, deviation, mean));
    out[3] = from_compute<T>(fmaf(two.y, deviation, mean));
  }
};
template <>
struct Normal<double> {
  static constexpr int kEach = 2;
  __device__ static void draw(UInt64 seed, UInt64 block, const Parameters& p, double* out) {
    const double2 both = to_normal_double(bits_at(seed, block));
    out[0] = fma(both.x, p.b, p.a);
    out[1] = fma(both.y, p.b, p.a);
  }
};

/// Exponential numbers of mean a.
template <typename T>
struct Exponential {
  static constexpr int kEach = 4;
  __device__ static void draw(UInt64 seed, UInt64 block, const Parameters& p, T* out) {
    const uint4 bits = bits_at(seed, block);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      out[i] = from_compute<T>(-logf(open_unit(word(bits, i))) * static_cast<float>(p.a));
    }
  }
};
template <>
struct Exponential<double> {
  static constexpr int kEach = 2;
  __device__ static void draw(UInt64 seed, UInt64 block, const Parameters& p, double* out) {
    const uint4 bits = bits_at(seed, block);
    out[0] = -log(open_unit(bits.x, bits.y)) * p.a;
    out[1] = -log(open_unit(bits.z, bits.w)) * p.a;
  }
};

/// 1 where a word is below `range`, the probability times 2 to the 32.
template <typename T>
struct Bernoulli {
  static constexpr int kEach = 4;
  __device__ static void draw(UInt64 seed, UInt64 block, const Parameters& p, T* out) {
    const uint4 bits = bits_at(seed, block);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      out[i] = from_compute<T>(static_cast<Compute<T>>(word(bits, i) < p.range));
    }
  }
};

/// `range` (at most 2 to the 32) whole numbers from `low` on, each with the same chance (D. Lemire,
/// "Fast random integer generation in an interval", 2019).
template <typename T>
struct Integers {
  static constexpr int kEach = 4;
  __device__ static void draw(UInt64 seed, UInt64 block, const Parameters& p, T* out) {
    const uint4 bits = bits_at(seed, block);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      UInt64 product = word(bits, i) * p.range;
      if (static_cast<unsigned>(product) < p.range) {
        const unsigned biased = static_cast<unsigned>((0x100000000ULL - p.range) % p.range);
        for (unsigned attempt = 1; static_cast<unsigned>(product) < biased; ++attempt) {
          product = word(bits_at(seed, block, attempt), i) * p.range;
        }
      }
      out[i] = static_cast<T>(p.low + (product >> 32));
    }
  }
};

/// The same of more than 2 to the 32; 0 means 2 to the 64.
template <typename T>
struct WideIntegers {
  static constexpr int kEach = 2;
  __device__ static UInt64 whole(uint4 bits, int i) {
    return i == 0 ? static_cast<UInt64>(bits.x) << 32 | bits.y
                  : static_cast<UInt64>(bits.z) << 32 | bits.w;
  }
  __device__ static void draw(UInt64 seed, UInt64 block, const Parameters& p, T* out) {
    const uint4 bits = bits_at(seed, block);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      UInt64 number = whole(bits, i);
      if (p.range != 0) {
        if (number * p.range < p.range) {
          const UInt64 biased = (0 - p.range) % p.range;
          for (unsigned attempt = 1; number * p.range < biased; ++attempt) {
            number = whole(bits_at(seed, block, attempt), i);
          }
        }
        number = __umul64hi(number, p.range);
      }
      out[i] = static_cast<T>(p.low + number);
    }
  }
};

template <typename Real>
struct GammaBits {
  Real normal, accept, boost;
};
__device__ __forceinline__ GammaBits<float> gamma_bits(float, UInt64 seed, UInt64 block,
                                                       unsigned attempt) {
  const uint4 bits = bits_at(seed, block, attempt);
  return {to_normal(bits.x, bits.y).x, open_unit(bits.z), open_unit(bits.w)};
}
__device__ __forceinline__ GammaBits<double> gamma_bits(double, UInt64 seed, UInt64 block,
                                                        unsigned attempt) {
  const uint4 rest = bits_at(seed, block, 2 * attempt + 1);
  return {to_normal_double(bits_at(seed, block, 2 * attempt)).x, open_unit(rest.x, rest.y),
          open_unit(rest.z, rest.w)};
}

/// Gamma numbers of shape a and scale b (G. Marsaglia and W. Tsang, "A simple method for generating
/// gamma variables", 2000).
template <typename T>
struct Gamma {
  static constexpr int kEach = 1;
  __device__ static void draw(UInt64 seed, UInt64 block, const Parameters& p, T* out) {
    using Real = Compute<T>;
    const Real shape = static_cast<Real>(p.a);
    const Real d = (shape < 1 ? shape + 1 : shape) - static_cast<Real>(1.0 / 3);
    const Real c = 1 / sqrt(9 * d);
    for (unsigned attempt = 0;; ++attempt) {
      const GammaBits<Real> bits = gamma_bits(Real(0), seed, block, attempt);
      Real v = 1 + c * bits.normal;
      if (!(v > 0)) continue;
      v = v * v * v;
      const Real square = bits.normal * bits.normal;
      if (!(log(bits.accept) < square / 2 + d - d * v + d * log(v))) continue;
      Real value = d * v;
      if (shape < 1) value *= exp(log(bits.boost) / shape);
      *out = from_compute<T>(value * static_cast<Real>(p.b));
      return;
    }
  }
};

}  // namespace kernwright
