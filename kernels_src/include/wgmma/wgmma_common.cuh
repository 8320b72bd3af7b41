// Shared by products by a warpgroup (wgmma): operands in shared memory, the order of products,
// types. Compute capability 9.0 alone, in code for sm_90a.
#pragma once

#include <kernwright/elements.cuh>

namespace kernwright {

/// Tiles in shared memory are columns of 128 bytes, swizzled as tensor copies do it: 64 elements of
/// a row each. `apart` bytes are from one such column to the next.
__device__ __forceinline__ unsigned long long matrix_descriptor(unsigned address, unsigned apart) {
  return (address & 0x3ffffu) >> 4 | static_cast<unsigned long long>(apart >> 4) << 16 |
         64ull << 32 | 1ull << 62;  // eight rows are 1024 bytes
}

/// The descriptor of what is `bytes` further on: one addition.
__device__ __forceinline__ unsigned long long further(unsigned long long descriptor,
                                                      unsigned bytes) {
  const unsigned low = static_cast<unsigned>(descriptor), high = descriptor >> 32;
  asm("mov.b64 %0, {%1, %2};" : "=l"(descriptor) : "r"(low + (bytes >> 4)), "r"(high));
  return descriptor;
}

/// Before the first product, and after accumulators were touched.
__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until at most `kLeft` committed groups are unfinished.
template <int kLeft>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

/// Keeps the compiler from touching the accumulators earlier.
template <int kCount>
__device__ __forceinline__ void settle(float (&accumulators)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(accumulators[i])::"memory");
}
template <int kCount>
__device__ __forceinline__ void settle(int (&accumulators)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(accumulators[i])::"memory");
}

/// The type of operands of which a has the elements A and b has B, of one size.
template <typename A, typename B>
struct Mixed {
  A a;
};
using MixedE4M3E5M2 = Mixed<Float8E4M3, Float8E5M2>;
using MixedE5M2E4M3 = Mixed<Float8E5M2, Float8E4M3>;

/// The accumulator type for products of In.
template <typename In>
struct ProductAccumulator {
  using Type = float;
};
template <>
struct ProductAccumulator<Int8> {
  using Type = int;
};

/// Two 16-bit floats, the first in the low half.
template <typename T>
__device__ __forceinline__ unsigned round_pair(float low, float high);
template <>
__device__ __forceinline__ unsigned round_pair<Float16>(float low, float high) {
  unsigned both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
template <>
__device__ __forceinline__ unsigned round_pair<BFloat16>(float low, float high) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

}  // namespace kernwright
