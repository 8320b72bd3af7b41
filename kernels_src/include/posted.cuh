// Values shared between the blocks of a launch. A word of 32 bits has a mark beside it, in one
// store of 64 bits: a load that returns the mark returns the word, too.
#pragma once

#include <kernwright/elements.cuh>

namespace kernwright {

/// Words of 64 bits for a posted value; all words are 0 before the value is posted.
template <typename T>
constexpr int kPostedWords = sizeof(T) / 4;

template <typename T>
union ValueWords {
  T value;
  unsigned word[sizeof(T) / 4];
  __device__ ValueWords() {}
};

__device__ __forceinline__ void store_relaxed(UInt64* to, UInt64 value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

/// By one thread.
template <typename T>
__device__ __forceinline__ void post(UInt64* to, const T& value) {
  static_assert(sizeof(T) % 4 == 0, "words are posted");
  ValueWords<T> words;
  words.value = value;
#pragma unroll
  for (int i = 0; i < kPostedWords<T>; ++i) {
    store_relaxed(to + i, 1ULL << 32 | words.word[i]);
  }
}

/// Waits until the value is posted: by a thread of a block that was started already.
template <typename T>
__device__ __forceinline__ T take_posted(const UInt64* from) {
  ValueWords<T> words;
  bool known = false;
  while (!known) {
    known = true;
#pragma unroll
    for (int i = 0; i < kPostedWords<T>; ++i) {
      UInt64 marked;
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(marked) : "l"(from + i) : "memory");
      words.word[i] = static_cast<unsigned>(marked);
      known = known && marked >> 32 != 0;
    }
  }
  return words.value;
}

/// Makes the place ready for the next launch, once all who take the value have it.
template <typename T>
__device__ __forceinline__ void clear_posted(UInt64* at) {
#pragma unroll
  for (int i = 0; i < kPostedWords<T>; ++i) store_relaxed(at + i, 0);
}

}  // namespace kernwright
