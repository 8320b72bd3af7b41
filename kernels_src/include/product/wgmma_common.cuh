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

/// Before the first product, and after sums were touched.
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

/// The type of operands of which a has the elements A and b has B, of one size.
template <typename A, typename B>
struct Mixed {
  A a;
};
using MixedE4M3E5M2 = Mixed<Float8E4M3, Float8E5M2>;
using MixedE5M2E4M3 = Mixed<Float8E5M2, Float8E4M3>;

/// The accumulator type for products of In.
template <typename In>
struct SumOf {
  using Type = float;
};
template <>
struct SumOf<Int8> {
  using Type = int;
};

}  // namespace kernwright
