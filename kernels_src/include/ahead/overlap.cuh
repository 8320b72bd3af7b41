// Programmatic dependent launch (PDL): a kernel starts before the one ahead of it has ended.
#pragma once

namespace kernwright {

/// Lets a dependent kernel start, which waits in pdl_wait() until this kernel has ended.
__device__ __forceinline__ void pdl_launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Waits until the kernel ahead has ended. Before the call, a kernel may read nothing that another
/// kernel writes, and write nothing. Every kernel that is launched with PDL must call it.
__device__ __forceinline__ void pdl_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// For kernels that load much: blocks of the dependent kernel prefetch weights meanwhile.
__device__ __forceinline__ void pdl_launch_then_wait() {
  pdl_launch_dependents();
  pdl_wait();
}

/// For short kernels: the dependent kernel starts when the kernel ahead has ended. Blocks that
/// started before would take the few multiprocessors that the kernel ahead leaves free.
__device__ __forceinline__ void pdl_wait_then_launch() {
  pdl_wait();
  pdl_launch_dependents();
}

/// The same in launches of few blocks alone: blocks of the dependent kernel would be spread
/// unevenly over the multiprocessors that more blocks leave. See overlaps_small_launches().
__device__ __forceinline__ void pdl_wait_then_launch_small() {
  constexpr unsigned kMostBlocks = 128;
  pdl_wait();
  if (gridDim.x * gridDim.y <= kMostBlocks) pdl_launch_dependents();
}

}  // namespace kernwright
