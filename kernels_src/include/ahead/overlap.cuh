// Kernels that begin while the one in front of them in the stream still ends.
#pragma once

namespace kernwright {

/// Lets the next kernel of the stream begin, where it may be launched so: it waits for all that
/// this one does.
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Waits for the kernel in front. Nothing that another kernel writes may be read before, and
/// nothing written. A kernel that is launched as a dependent one must call it.
__device__ __forceinline__ void wait_for_kernel_in_front() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Both, for kernels that read much: blocks of the next one fetch weights meanwhile.
__device__ __forceinline__ void wait_for_previous() {
  let_next_begin();
  wait_for_kernel_in_front();
}

/// Both, for short kernels: the next one begins when the kernel in front has ended. Blocks that
/// begin before would crowd the few processors that it left free.
__device__ __forceinline__ void wait_then_let_next_begin() {
  wait_for_kernel_in_front();
  let_next_begin();
}

}  // namespace kernwright
