// mbarriers in shared memory that count threads and bytes, of this block and of the peer blocks of
// its cluster. Compute capability 9.0 and newer.
#pragma once

#include <kernwright/shared_address.cuh>

namespace kernwright {

/// The rank of the block in its cluster.
__device__ __forceinline__ unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Every thread of the cluster arrives, then waits. Of what it wrote only barriers are seen then,
/// after publish(): the fences for all else take about a microsecond.
__device__ __forceinline__ void arrive_in_cluster() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
/// Arrives with release order: all earlier writes of the thread are seen after the wait.
__device__ __forceinline__ void release_to_cluster() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
__device__ __forceinline__ void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
/// All threads of the cluster meet; each sees all earlier writes of the peers.
__device__ __forceinline__ void cluster_sync() {
  release_to_cluster();
  wait_for_cluster();
}

/// Where the cluster's block `rank` has what is at this address of shared memory here.
__device__ __forceinline__ unsigned address_in_block(unsigned address, unsigned rank) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}
/// What is at this address of shared memory in the cluster's block `rank`.
__device__ __forceinline__ unsigned read_in_block(unsigned address, unsigned rank) {
  unsigned value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];"
               : "=r"(value)
               : "r"(address_in_block(address, rank))
               : "memory");
  return value;
}
/// Sends four numbers of 32 bits to an address of another block. The barrier at `full`, in the
/// receiving block, counts the bytes.
__device__ __forceinline__ void send_four(unsigned to, const unsigned (&four)[4], unsigned full) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(to),
      "r"(four[0]), "r"(four[1]), "r"(four[2]), "r"(four[3]), "r"(full)
      : "memory");
}

/// True in one lane of a whole warp. Where threads are chosen like this the compiler knows that one
/// is active: it needs no loop around each copy.
__device__ __forceinline__ bool is_elected() {
  unsigned elected;
  asm volatile("{\n.reg .pred one;\nelect.sync _|one, 0xffffffff;\nselp.u32 %0, 1, 0, one;\n}"
               : "=r"(elected));
  return elected != 0;
}

/// An mbarrier in shared memory. A phase ends when `count` arrivals and all expected bytes have
/// come.
struct Mbarrier {
  unsigned long long state;

  __device__ __forceinline__ void init(unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(count)
                 : "memory");
  }
  /// After init() of all barriers, by the initialising thread: this thread and its copies may use
  /// the barriers at once, all further threads once the block (the cluster) has met.
  __device__ __forceinline__ static void publish() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __device__ __forceinline__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(this)) : "memory");
  }
  /// Arrives, and makes the phase wait for `bytes` of copies.
  __device__ __forceinline__ void arrive_expecting(unsigned bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)),
        "r"(bytes)
        : "memory");
  }
  /// Arrives at the barrier of the cluster's block `rank` at an equal address. The arriving thread
  /// no longer uses shared memory. Its writes to global memory need not be seen there (this would
  /// cost a fence of the whole device).
  __device__ __forceinline__ void arrive_at(unsigned rank) {
    asm volatile(
        "{\n.reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(shared_address(this)),
        "r"(rank)
        : "memory");
  }
  /// Until the phase of that parity has ended. A new barrier has ended parity 1.
  __device__ __forceinline__ void wait(unsigned parity) {
    asm volatile(
        "{\n.reg .pred done;\nAGAIN:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra AGAIN;\n}" ::"r"(shared_address(this)),
        "r"(parity)
        : "memory");
  }
  /// Whether that phase has ended, without waiting for it.
  __device__ __forceinline__ bool has_ended(unsigned parity) {
    unsigned ended;
    asm volatile(
        "{\n.reg .pred done;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n}"
        : "=r"(ended)
        : "r"(shared_address(this)), "r"(parity)
        : "memory");
    return ended != 0;
  }
};

}  // namespace kernwright
