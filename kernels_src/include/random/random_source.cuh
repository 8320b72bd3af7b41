// Random bits as a function of seed, place and attempt, and numbers in the unit interval.
#pragma once

#include <kernwright/philox.cuh>

namespace kernwright {

/// Four words of the block; `attempt` numbers what rejection draws anew, `lane` what one element
/// draws beside.
__device__ __forceinline__ uint4 bits_at(unsigned long long seed, unsigned long long block,
                                         unsigned attempt = 0, unsigned lane = 0) {
  const uint4 counter = make_uint4(static_cast<unsigned>(block), static_cast<unsigned>(block >> 32),
                                   attempt, lane);
  return philox4x32(counter,
                    make_uint2(static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)));
}

__device__ __forceinline__ unsigned word(uint4 bits, int i) {
  return i == 0 ? bits.x : i == 1 ? bits.y : i == 2 ? bits.z : bits.w;
}

/// In (0, 1]: the largest words round up to 1.
__device__ __forceinline__ float open_unit(unsigned bits) {
  return fmaf(static_cast<float>(bits), 2.3283064365386963e-10f, 1.1641532182693481e-10f);
}
/// In (0, 1].
__device__ __forceinline__ double open_unit(unsigned high, unsigned low) {
  return 1.0 - to_uniform_double(high, low);
}

__device__ __forceinline__ double2 to_normal_double(uint4 bits) {
  const double radius = sqrt(-2.0 * log(open_unit(bits.x, bits.y)));
  double sine, cosine;
  sincospi(2.0 * to_uniform_double(bits.z, bits.w), &sine, &cosine);
  return make_double2(radius * cosine, radius * sine);
}

/// The draws of one element, one after the other: uniform numbers of 53 bits.
struct Source {
  unsigned long long seed, place;
  unsigned attempt = 0, lane = 0;

  __device__ uint4 bits() { return bits_at(seed, place, attempt++, lane); }
  /// Two numbers in (0, 1].
  __device__ double2 units() {
    const uint4 drawn = bits();
    return make_double2(open_unit(drawn.x, drawn.y), open_unit(drawn.z, drawn.w));
  }
};

}  // namespace kernwright
