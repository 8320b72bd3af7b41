// Copies from global to shared memory in the background. A thread waits for its own copies; what
// others copied is there after a barrier besides.
#pragma once

#include <kernwright/elements.cuh>

namespace kernwright {

/// Whether packs of N elements can be copied so: all of them have 16 bytes.
template <typename T, int N>
constexpr bool kCopiesInBackground = sizeof(T) * N == 16;

/// A pack to shared memory, past the first level of cache. Devices before 8.0 copy it at once.
template <typename T, int N>
__device__ __forceinline__ void copy_in_background(Pack<T, N>* to, const Pack<T, N>* from) {
#if __CUDA_ARCH__ >= 800
  static_assert(kCopiesInBackground<T, N>, "packs of 16 bytes are copied in the background");
  const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(from) : "memory");
#else
  *to = *from;
#endif
}
/// Ends a group of copies.
__device__ __forceinline__ void end_copy_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits for all groups of this thread but the last `Left` ones.
template <int Left>
__device__ __forceinline__ void wait_for_copy_groups() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
#endif
}
/// The same for a number up to `Most` that is known once a loop has been unrolled.
template <int Most>
__device__ __forceinline__ void wait_for_copy_groups(int left) {
  if constexpr (Most == 0) {
    wait_for_copy_groups<0>();
  } else if (left >= Most) {
    wait_for_copy_groups<Most>();
  } else {
    wait_for_copy_groups<Most - 1>(left);
  }
}

}  // namespace kernwright
