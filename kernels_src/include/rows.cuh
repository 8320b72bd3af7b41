// Rows that a group of threads holds in registers, and reductions over the group.
#pragma once

#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>

namespace kernwright {

template <typename T>
__device__ __forceinline__ T infinity() {
  return static_cast<T>(__int_as_float(0x7f800000));
}

/// Blocks of `Threads` that a multiprocessor has room for when each thread holds `values` numbers
/// of type C of a row: registers are given out accordingly.
template <typename C>
__device__ constexpr int blocks_at_once(int threads, int values) {
#if __CUDA_ARCH__ >= 800
  constexpr int kMost = 1536;
#else
  constexpr int kMost = 1024;  // threads of a multiprocessor
#endif
  constexpr int kRegisters = 65536, kOthers = 20;  // of a multiprocessor; beside a thread's values
  const int fit = kRegisters / (values + kOthers), room = fit < kMost ? fit : kMost;
  return sizeof(C) == 4 && threads <= room ? room / threads : 1;
}

/// Combines over the `Width` threads of a row: part of a warp, or all `Threads` of the block. Every
/// thread of the block must call it, and each thread gets the result of its row. `Only`: see
/// block_reduce().
template <int Width, int Threads, int Only = -1, typename T, typename Combine>
__device__ __forceinline__ T row_reduce(T value, Combine combine, T none) {
  static_assert(Width <= 32 || Width == Threads,
                "a row is shared by a warp at most, or by a block");
  if constexpr (Width <= 32) {
    return warp_reduce<Width>(value, combine);
  } else {
    return block_reduce<Threads, Only>(value, combine, none);
  }
}

/// Calls visit(slot, element) for each element that thread `lane` of `Width` holds of a row of
/// `packs` packs: pack i * Width + lane is in the slots from i * V on.
template <int V, int Items, int Width, typename Visit>
__device__ __forceinline__ void for_held(int lane, int packs, Visit visit) {
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    const int pack = i * Width + lane;
    if (pack < packs) {
#pragma unroll
      for (int j = 0; j < V; ++j) visit(i * V + j, pack * V + j);
    }
  }
}

/// Loads the pack by one predicated instruction: the compiler moves the conversion of a pack behind
/// the condition of its load.
template <typename T, int V>
__device__ __forceinline__ void load_if(bool is_there, const Pack<T, V>* from, Pack<T, V>& pack) {
  constexpr int kBytes = sizeof(pack);
  static_assert(kBytes >= 2, "bytes have no registers of their own");
  static_assert(kBytes <= 16, "an instruction loads no more");
  unsigned word[kBytes < 4 ? 1 : kBytes / 4] = {};
  memcpy(word, &pack, kBytes);
  const auto at = __cvta_generic_to_global(from);
  const int wanted = is_there;
  if constexpr (kBytes == 2) {
    unsigned short half = word[0];
    asm volatile("{.reg .pred p; setp.ne.s32 p, %1, 0; @p ld.global.b16 %0, [%2];}"
                 : "+h"(half)
                 : "r"(wanted), "l"(at));
    word[0] = half;
  } else if constexpr (kBytes == 4) {
    asm volatile("{.reg .pred p; setp.ne.s32 p, %1, 0; @p ld.global.b32 %0, [%2];}"
                 : "+r"(word[0])
                 : "r"(wanted), "l"(at));
  } else if constexpr (kBytes == 8) {
    asm volatile("{.reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.v2.b32 {%0, %1}, [%3];}"
                 : "+r"(word[0]), "+r"(word[1])
                 : "r"(wanted), "l"(at));
  } else {
    asm volatile("{.reg .pred p; setp.ne.s32 p, %4, 0; @p ld.global.v4.b32 {%0, %1, %2, %3}, [%5];}"
                 : "+r"(word[0]), "+r"(word[1]), "+r"(word[2]), "+r"(word[3])
                 : "r"(wanted), "l"(at));
  }
  memcpy(&pack, word, kBytes);
}

/// Loads a thread's packs of a row. Slots past the row stay as they are.
template <int V, int Items, int Width, typename T>
__device__ __forceinline__ void load_raw(Pack<T, V> (&raw)[Items], const T* row, int lane,
                                         int packs) {
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    const int pack = i * Width + lane;
    if (pack < packs) raw[i] = reinterpret_cast<const Pack<T, V>*>(row)[pack];
  }
}

/// Whether a thread has more packs of a row than predicates for their loads. Parts of warps took
/// longer by load_if() (rms_norm of 98304x80, H200).
template <int Items, int Width>
constexpr bool kManyPacks = Items > 4 && Width >= 32;

/// All loads are in flight before the wait for the first. Slots past the row become `filler`, which
/// T represents.
template <int V, int Items, int Width, bool Predicated = kManyPacks<Items, Width>, typename T>
__device__ __forceinline__ void load_held(Compute<T> (&held)[V * Items], const T* row, int lane,
                                          int packs, Compute<T> filler) {
  Pack<T, V> raw[Items];
  if constexpr (Predicated) {
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int pack = i * Width + lane;
#pragma unroll
      for (int j = 0; j < V; ++j) raw[i].value[j] = from_compute<T>(filler);
      load_if(pack < packs, reinterpret_cast<const Pack<T, V>*>(row) + pack, raw[i]);
    }
  } else {
    load_raw<V, Items, Width>(raw, row, lane, packs);
  }
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    const bool inside = Predicated || i * Width + lane < packs;
#pragma unroll
    for (int j = 0; j < V; ++j) held[i * V + j] = inside ? computed(raw[i].value, j) : filler;
  }
}

/// Stores what value(slot, element) returns, in packs.
template <int V, int Items, int Width, typename T, typename Value>
__device__ __forceinline__ void store_held(T* row, int lane, int packs, Value value) {
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    const int pack = i * Width + lane;
    if (pack < packs) {
      Pack<T, V> raw;
#pragma unroll
      for (int j = 0; j < V; ++j)
        raw.value[j] = from_compute<T>(static_cast<Compute<T>>(value(i * V + j, pack * V + j)));
      reinterpret_cast<Pack<T, V>*>(row)[pack] = raw;
    }
  }
}

}  // namespace kernwright
