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

/// Bytes of a line: `size` of them from `data` on. What lies outside is not read.
struct LineBytes {
  const unsigned char* data;
  int size;

  /// Whether aligned units have all of the 16 bytes from byte `at` on, and lie inside.
  __device__ __forceinline__ bool has_units(int at) const {
    const int shift = shift_at(at);
    return at >= shift && at - shift + (shift == 0 ? 16 : 32) <= size;
  }
  __device__ __forceinline__ int shift_at(int at) const {
    return static_cast<int>(reinterpret_cast<unsigned long long>(data + at) & 15);
  }
  /// The first of them, and the second; has_units(at).
  __device__ __forceinline__ Unit16 low(int at) const { return unit(at - shift_at(at)); }
  __device__ __forceinline__ Unit16 high(int at) const {
    const int shift = shift_at(at);
    return unit(at - shift + (shift == 0 ? 0 : 16));
  }

 private:
  __device__ __forceinline__ Unit16 unit(int at) const {
    return *reinterpret_cast<const Unit16*>(data + at);
  }
};

}  // namespace kernwright
