// Rows that the blocks of a cluster share: each block reduces a part of the row and reads the
// partial results of its peers. Compute capability 9.0.
#pragma once

#include <kernwright/mbarrier.cuh>

namespace kernwright {

constexpr int kMostRowBlocks = 8;  // blocks of any device with clusters

/// The part of a row that a block has.
struct RowPart {
  long long row;
  int rank;   ///< of the block in its cluster
  int first;  ///< pack of the row
  int packs;

  /// `part`: packs of each block but the last one.
  __device__ __forceinline__ RowPart(int blocks, int part, int all)
      : row(blockIdx.x / blocks), rank(static_cast<int>(blockIdx.x % blocks)), first(rank * part) {
    packs = all - first < part ? all - first : part;
  }
};

/// The values of all blocks of the cluster in the order of their ranks, in shared memory. Every
/// thread calls it, once in a kernel that begins with arrive_in_cluster().
template <typename T>
__device__ __forceinline__ const T* gather_in_cluster(const T& value, int blocks) {
  static_assert(sizeof(T) % 8 == 0, "words of 64 bits are stored");
  constexpr int kWords = sizeof(T) / 8;
  union Words {
    T value;
    unsigned long long word[kWords];
    __device__ Words() {}
  } words;
  words.value = value;
  __shared__ alignas(16) unsigned char memory[kMostRowBlocks * sizeof(T)];
  const T* const values = reinterpret_cast<const T*>(memory);
  wait_for_cluster();  // all blocks have begun, so their shared memory is there
  if (static_cast<int>(threadIdx.x) < blocks) {
    const unsigned there = address_in_block(shared_address(values + cluster_rank()), threadIdx.x);
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      asm volatile("st.shared::cluster.b64 [%0], %1;" ::"r"(there + 8 * i), "l"(words.word[i])
                   : "memory");
    }
  }
  cluster_sync();
  return values;
}

}  // namespace kernwright
