// Units of 16 bytes and packs from any address, out of the aligned ones that have their bytes.
#pragma once

#include <kernwright/elements.cuh>

namespace kernwright {

struct alignas(16) Unit16 {
  unsigned word[4];
};

/// The 16 bytes from byte `shift` (0 to 15) of `low` on; `high` follows it.
__device__ __forceinline__ Unit16 shifted_unit(const Unit16& low, const Unit16& high, int shift) {
  unsigned words[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    words[i] = low.word[i];
    words[i + 4] = high.word[i];
  }
#pragma unroll
  for (int i = 0; i < 6; ++i) words[i] = shift & 8 ? words[i + 2] : words[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) words[i] = shift & 4 ? words[i + 1] : words[i];
  Unit16 unit;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    unit.word[i] = __funnelshift_r(words[i], words[i + 1], (shift & 3) * 8);
  }
  return unit;
}

/// The pack of 8 or 16 bytes at any address of an element, out of the two aligned packs around it,
/// both of which are read.
template <typename T, int N>
__device__ __forceinline__ Pack<T, N> load_unaligned(const char* from) {
  constexpr unsigned kBytes = N * sizeof(T), kWords = kBytes / 4;
  static_assert(kBytes == 8 || kBytes == 16, "words are shifted by one, or by one and two");
  union Words {
    Pack<T, N> pack;
    unsigned word[kWords];
    __device__ Words() {}
  };
  const unsigned shift = static_cast<unsigned>(reinterpret_cast<unsigned long long>(from)) % kBytes;
  const Pack<T, N>* const aligned = reinterpret_cast<const Pack<T, N>*>(from - shift);
  Words low, high, shifted;
  low.pack = aligned[0];
  high.pack = aligned[1];
  unsigned words[2 * kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    words[i] = low.word[i];
    words[i + kWords] = high.word[i];
  }
  if constexpr (kWords == 4) {
#pragma unroll
    for (int i = 0; i < 6; ++i) words[i] = shift & 8 ? words[i + 2] : words[i];
  }
  if constexpr (sizeof(T) < 8) {
#pragma unroll
    for (int i = 0; i <= kWords; ++i) words[i] = shift & 4 ? words[i + 1] : words[i];
  }
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    shifted.word[i] = sizeof(T) < 4 ? __funnelshift_r(words[i], words[i + 1], shift % 4 * 8)
                                    : words[i];
  }
  return shifted.pack;
}

/// The aligned units of the target of a line of bytes which aligned units of the source have,
/// without bytes outside of the line.
struct LineUnits {
  Unit16* target;        ///< the first
  const Unit16* source;  ///< the unit with the first byte, `shift` bytes in
  int shift, begin, count;

  __device__ __forceinline__ LineUnits(unsigned char* to, const unsigned char* from, int bytes) {
    const auto address = reinterpret_cast<unsigned long long>(to);
    shift = static_cast<int>(reinterpret_cast<unsigned long long>(from) - address) & 15;
    // The first aligned byte of the target that is not in the first, partial unit of the source.
    begin = min(shift + (static_cast<int>(0 - address - shift) & 15), bytes);
    const int last = shift == 0 ? 0 : 16 - shift;  // bytes of the source's next unit
    count = max(0, bytes - begin - last) / 16;
    target = reinterpret_cast<Unit16*>(to + begin);
    source = reinterpret_cast<const Unit16*>(from + begin - shift);
  }
  /// The byte of the line behind them.
  __device__ __forceinline__ int end() const { return begin + count * 16; }
};

}  // namespace kernwright
