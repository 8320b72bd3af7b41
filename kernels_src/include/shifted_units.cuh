// Units of 16 bytes from any address, out of the aligned ones that have their bytes.
#pragma once

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

/// The aligned units of the target of a line of bytes which aligned units of the source have,
/// without bytes outside of the line.
struct LineUnits {
  Unit16* target;        ///< the first
  const Unit16* source;  ///< with its first byte, which lies `shift` bytes behind the begin
  int shift, begin, count;

  __device__ __forceinline__ LineUnits(unsigned char* to, const unsigned char* from, int bytes) {
    const auto address = reinterpret_cast<unsigned long long>(to);
    shift = static_cast<int>(reinterpret_cast<unsigned long long>(from) - address) & 15;
    // The first aligned byte of the target that is not in the first, partial unit of the source.
    begin = min(shift + (static_cast<int>(0 - address - shift) & 15), bytes);
    const int last = shift == 0 ? 0 : 16 - shift;  // bytes behind a unit of the same in the source
    count = max(0, bytes - begin - last) / 16;
    target = reinterpret_cast<Unit16*>(to + begin);
    source = reinterpret_cast<const Unit16*>(from + begin - shift);
  }
  /// The byte of the line behind them.
  __device__ __forceinline__ int end() const { return begin + count * 16; }
};

}  // namespace kernwright
