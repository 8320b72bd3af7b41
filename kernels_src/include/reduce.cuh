// Reductions of a warp and of a block in a fixed order: equal numbers give equal results.
#pragma once

namespace kernwright {

struct Sum {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};

/// NaN wins, as in NumPy. Of equals the second one is taken, which shows in the sign of a zero.
struct Maximum {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

/// `exchange` of each word; any trivially copyable type of whole words.
template <typename T, typename Exchange>
__device__ __forceinline__ T exchange_words(T value, Exchange exchange) {
  static_assert(sizeof(T) % 4 == 0, "words are exchanged");
  constexpr int kWords = sizeof(T) / 4;
  union Words {
    T value;
    unsigned word[kWords];
    __device__ Words() {}
  } words;
  words.value = value;
#pragma unroll
  for (int i = 0; i < kWords; ++i) words.word[i] = exchange(words.word[i]);
  return words.value;
}
/// The value of the lane whose number differs in the bits of `mask`.
template <typename T>
__device__ __forceinline__ T shuffle_xor(T value, int mask) {
  return exchange_words(value, [=](unsigned w) { return __shfl_xor_sync(~0u, w, mask); });
}
/// The value of the lane `lanes` below, or one's own where there is none.
template <typename T>
__device__ __forceinline__ T shuffle_up(T value, int lanes) {
  return exchange_words(value, [=](unsigned w) { return __shfl_up_sync(~0u, w, lanes); });
}
/// The value of a lane.
template <typename T>
__device__ __forceinline__ T shuffle_from(T value, int lane) {
  return exchange_words(value, [=](unsigned w) { return __shfl_sync(~0u, w, lane); });
}

/// Combines over groups of `Width` lanes (a power of two, at most 32); every lane of the warp must
/// call it, and each lane gets the result of its group. The order of operands must not matter to
/// `combine`.
template <int Width = 32, typename T, typename Combine>
__device__ __forceinline__ T warp_reduce(T value, Combine combine) {
#pragma unroll
  for (int mask = Width / 2; mask > 0; mask /= 2) value = combine(value, shuffle_xor(value, mask));
  return value;
}

/// Combines over all threads of a block of `Threads` (a multiple of 32, one dimension); each thread
/// gets the result. Every thread must call it. `none` is neutral for `combine`. `Only` saves a
/// barrier for each call: then each call in a kernel needs a different number, and a loop has
/// either no such call or at least two, so that the barrier of another call lies between two uses
/// of a call's memory.
template <int Threads, int Only = -1, typename T, typename Combine>
__device__ __forceinline__ T block_reduce(T value, Combine combine, T none) {
  static_assert(Threads % 32 == 0 && Threads <= 1024, "whole warps");
  value = warp_reduce(value, combine);
  if (Threads == 32) return value;
  constexpr int kWarps = Threads / 32;
  __shared__ alignas(16) unsigned char memory[kWarps * sizeof(T)];
  T* const partial = reinterpret_cast<T*>(memory);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (Only < 0) __syncthreads();  // an earlier call may still be read
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  if constexpr ((kWarps & (kWarps - 1)) == 0) {
    return warp_reduce<kWarps>(partial[lane % kWarps], combine);
  } else {
    return warp_reduce(lane < kWarps ? partial[lane] : none, combine);
  }
}

/// Counts a block at `arrived` and tells whether the block is the last one of `blocks`. The word is
/// 0 again after the last block. One thread calls it. Work before the block's last barrier is
/// visible to the last block behind the next barrier of that block.
__device__ __forceinline__ bool arrives_last(unsigned* arrived, unsigned blocks) {
  unsigned before;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(arrived)
               : "memory");
  const bool last = before == blocks - 1;
  if (last) atomicExch(arrived, 0u);
  return last;
}

/// arrives_last() for all threads of the block; each thread must call it. Earlier writes of all
/// blocks are then visible.
__device__ __forceinline__ bool is_last_block(unsigned* arrived, unsigned blocks) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) last = arrives_last(arrived, blocks);
  __syncthreads();
  return last;
}

}  // namespace kernwright
