// Philox4x32-10: random numbers as a function of a counter and a key, with no state in memory.
#pragma once

namespace kernwright {

/// The ten rounds over one counter: 128 random bits. Equal arguments give equal bits on every
/// device (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
__device__ __forceinline__ uint4 philox4x32(uint4 counter, uint2 key) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned low0 = 0xD2511F53u * counter.x, high0 = __umulhi(0xD2511F53u, counter.x);
    const unsigned low2 = 0xCD9E8D57u * counter.z, high2 = __umulhi(0xCD9E8D57u, counter.z);
    counter = make_uint4(high2 ^ counter.y ^ key.x, low2, high0 ^ counter.w ^ key.y, low0);
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return counter;
}

/// A value in [0, 1) from the upper 24 bits: every one is exact in a float.
__device__ __forceinline__ float to_uniform(unsigned bits) {
  return static_cast<float>(bits >> 8) * 5.9604644775390625e-8f;  // 2 to the -24
}

/// A value in [0, 1) with 53 random bits.
__device__ __forceinline__ double to_uniform_double(unsigned high, unsigned low) {
  const unsigned long long bits = (static_cast<unsigned long long>(high) << 32 | low) >> 11;
  return static_cast<double>(bits) * 1.1102230246251565e-16;  // 2 to the -53
}

/// Two independent values of the standard normal distribution (Box and Muller), up to 5.7.
__device__ __forceinline__ float2 to_normal(unsigned first, unsigned second) {
  // The range (0, 1] leaves out 0, whose logarithm does not exist.
  const float radius =
      sqrtf(-2.0f * logf((static_cast<float>(first >> 8) + 1.0f) * 5.9604644775390625e-8f));
  float sine, cosine;
  sincospif(2.0f * to_uniform(second), &sine, &cosine);
  return make_float2(radius * cosine, radius * sine);
}

/// A stream of random numbers. Streams of different seeds or sequences share no numbers; give every
/// thread a sequence of its own. A stream has 2^66 numbers of 32 bits, and any of them can be the
/// first.
class Philox {
 public:
  /// `offset`: how many blocks of four 32-bit numbers are skipped.
  __device__ explicit Philox(unsigned long long seed, unsigned long long sequence = 0,
                             unsigned long long offset = 0)
      : key_(make_uint2(static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32))),
        sequence_(sequence),
        block_(offset) {}

  /// The next four at once: the cheapest way. Numbers left of an earlier block are dropped.
  __device__ uint4 next4() {
    left_ = 0;
    return draw();
  }
  __device__ float4 uniform4() {
    const uint4 bits = next4();
    return make_float4(to_uniform(bits.x), to_uniform(bits.y), to_uniform(bits.z),
                       to_uniform(bits.w));
  }
  __device__ float4 normal4() {
    const uint4 bits = next4();
    const float2 one = to_normal(bits.x, bits.y), two = to_normal(bits.z, bits.w);
    return make_float4(one.x, one.y, two.x, two.y);
  }

  /// 32 random bits.
  __device__ unsigned next() {
    if (left_ == 0) {
      bits_ = draw();
      left_ = 4;
    }
    const unsigned result = bits_.x;
    bits_ = make_uint4(bits_.y, bits_.z, bits_.w, 0);
    --left_;
    return result;
  }
  /// A uniform number in [0, 1).
  __device__ float uniform() { return to_uniform(next()); }
  __device__ double uniform_double() {
    const unsigned high = next();
    return to_uniform_double(high, next());
  }
  /// Standard normal; takes two numbers for one, normal4() takes one.
  __device__ float normal() {
    const unsigned first = next();
    return to_normal(first, next()).x;
  }
  /// A whole number below `bound` (above 0); the chances of all numbers are equal up to 2^-32.
  __device__ unsigned below(unsigned bound) { return __umulhi(next(), bound); }

 private:
  __device__ uint4 draw() {
    const uint4 counter =
        make_uint4(static_cast<unsigned>(block_), static_cast<unsigned>(block_ >> 32),
                   static_cast<unsigned>(sequence_), static_cast<unsigned>(sequence_ >> 32));
    ++block_;
    return philox4x32(counter, key_);
  }

  uint2 key_;
  unsigned long long sequence_;
  unsigned long long block_;
  uint4 bits_ = {0, 0, 0, 0};
  int left_ = 0;
};

}  // namespace kernwright
