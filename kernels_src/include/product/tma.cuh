// Copies of TMA tiles of tensors between global and shared memory through tensor maps.
// Compute capability 9.0 and newer.
#pragma once

#include <kernwright/mbarrier.cuh>

namespace kernwright {

/// The host's TensorMap; the kernel's parameter is `const __grid_constant__`.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

__device__ __forceinline__ void prefetch(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// The begin of a TMA tile of four dimensions, x along the contiguous elements.
struct TmaPlace {
  int x, y, z, w;
};

/// `full` counts the bytes of the TMA tile. Elements outside the tensor count too, and become zero.
__device__ __forceinline__ void tma_load(void* target, const TensorMap& map, TmaPlace at,
                                         Mbarrier& full) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared_address(target)),
      "l"(&map), "r"(at.x), "r"(at.y), "r"(at.z), "r"(at.w), "r"(shared_address(&full))
      : "memory");
}

/// Prefetches the TMA tile into L2 alone, where later writes are seen.
__device__ __forceinline__ void tma_prefetch(const TensorMap& map, TmaPlace at) {
  asm volatile(
      "cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];" ::"l"(&map),
      "r"(at.x), "r"(at.y), "r"(at.z), "r"(at.w)
      : "memory");
}

/// A multicast tma_load(): into every block of the cluster whose bit is set, at an equal offset;
/// the barrier there counts the bytes.
__device__ __forceinline__ void tma_load_multicast(unsigned short blocks, void* target,
                                                   const TensorMap& map, TmaPlace at,
                                                   Mbarrier& full) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(shared_address(target)),
      "l"(&map), "r"(at.x), "r"(at.y), "r"(at.z), "r"(at.w), "r"(shared_address(&full)), "h"(blocks)
      : "memory");
}

/// `bytes` that follow each other: a multiple of 16, at multiples of 16. `full` counts them.
__device__ __forceinline__ void load_bytes(void* target, const void* from, unsigned bytes,
                                           Mbarrier& full) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(target)),
      "l"(from), "r"(bytes), "r"(shared_address(&full))
      : "memory");
}

/// Stores bytes to global memory, in the group of the thread's next commit_stores().
__device__ __forceinline__ void store_bytes(void* target, const void* from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(target),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}

/// The thread's writes to shared memory are seen by copies that begin after the block has met.
__device__ __forceinline__ void show_to_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Shared memory to the TMA tile at (x, y, z); elements outside the tensor are left out. Belongs to
/// the group of the thread's next commit_stores().
__device__ __forceinline__ void tma_store(const TensorMap& map, const void* source, int x, int y,
                                          int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(
          &map),
      "r"(x), "r"(y), "r"(z), "r"(shared_address(source))
      : "memory");
}
/// The same at (x, y, z, w).
__device__ __forceinline__ void tma_store(const TensorMap& map, const void* source, int x, int y,
                                          int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], "
      "[%5];" ::"l"(&map),
      "r"(x), "r"(y), "r"(z), "r"(w), "r"(shared_address(source))
      : "memory");
}
__device__ __forceinline__ void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Until at most `kLeft` of the thread's groups of stores still read shared memory.
template <int kLeft>
__device__ __forceinline__ void wait_for_store_reads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLeft) : "memory");
}

}  // namespace kernwright
