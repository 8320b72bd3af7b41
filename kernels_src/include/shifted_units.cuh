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
    shifted.word[i] =
        sizeof(T) < 4 ? __funnelshift_r(words[i], words[i + 1], shift % 4 * 8) : words[i];
  }
  return shifted.pack;
}

/// Loads the packs `first` + i * Width + lane of a row of n elements at any address, at least two
/// aligned units of which are whole. Only the row's bytes are read; what is behind the row is
/// undefined.
template <int Items, int Width, typename T>
__device__ __forceinline__ void load_shifted(Unit16 (&packs)[Items], const T* row, int first,
                                             int lane, int n) {
  constexpr int kSize = sizeof(T), kPack = 16 / kSize;
  const int shift = static_cast<int>(reinterpret_cast<unsigned long long>(row) % 16);
  const Unit16* const units = reinterpret_cast<const Unit16*>(row - shift / kSize);
  // The units in front of `end` are whole, the first one where nothing is shifted. Other arrays may
  // have the rest of the others.
  const int end = (shift + n * kSize) / 16;
  const bool has_first = shift > 0 && first + lane == 0;
  Unit16 low[Items], high[Items];
  bool has_last = false;
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    const int unit = first + i * Width + lane;
    low[i] = units[i == 0 && has_first ? 1 : min(unit, end - 1)];
    high[i] = units[min(unit + 1, end - 1)];
    has_last = has_last || unit == end || unit + 1 == end;
  }
  const auto load_part = [&](int unit) {  // element by element
    union {
      Unit16 unit;
      T element[kPack];
    } part = {};
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const int at = unit * kPack - shift / kSize + j;
      if (at >= 0 && at < n) part.element[j] = row[at];
    }
    return part.unit;
  };
  if (has_first) low[0] = load_part(0);
  if (has_last) {
    const Unit16 last = load_part(end);
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int unit = first + i * Width + lane;
      if (unit == end) low[i] = last;
      if (unit + 1 == end) high[i] = last;
    }
  }
#pragma unroll
  for (int i = 0; i < Items; ++i) packs[i] = shifted_unit(low[i], high[i], shift);
}

/// Stores pack number `number` of a row of n elements at any address. All lanes of a warp call it
/// with packs side by side, and each stores the aligned unit that ends in its pack.
template <typename T>
__device__ __forceinline__ void store_shifted(T* row, const Unit16& pack, int number, int n) {
  constexpr int kPack = 16 / sizeof(T);
  union Elements {
    Unit16 unit;
    T element[kPack];
    __device__ Elements(const Unit16& bytes) : unit(bytes) {}
  };
  const int lane = threadIdx.x % 32;
  const int shift = static_cast<int>(reinterpret_cast<unsigned long long>(row) % 16);
  const int places = shift / static_cast<int>(sizeof(T)), at = number * kPack;
  Unit16 before;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const unsigned word = __shfl_up_sync(0xffffffffu, pack.word[w], 1);
    before.word[w] = shift == 0 ? pack.word[w] : word;
  }
  const Elements unit(shifted_unit(before, pack, (16 - shift) % 16)), all(pack);
  const int begin = at - places;
  const bool is_first = lane == 0 && shift > 0;
  if (!is_first && begin + kPack <= n) {
    *reinterpret_cast<Unit16*>(row + begin) = unit.unit;
  } else if (!is_first) {
#pragma unroll
    for (int j = 0; j < kPack; ++j)
      if (begin + j < n) row[begin + j] = unit.element[j];
  }
  if (shift > 0 && (lane == 0 || lane == 31)) {  // parts of units that warps share
#pragma unroll
    for (int j = 0; j < kPack; ++j)
      if ((lane == 0) == (j < kPack - places) && at + j < n) row[at + j] = all.element[j];
  }
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
