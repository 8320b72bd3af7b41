// Codes of two or three bits of packed weights.
#pragma once

#include <kernwright/packed_codes.cuh>

namespace kernwright {

/// 32 whole numbers of a lane, eight of each part of 32. The lower two bits are in two words, one
/// for the first four numbers of a part, one for the last four. The bytes of a word have values 0,
/// 2, 1, 3 of all parts. A byte of the third bits has the parts of the first four numbers, then of
/// the last four.
template <typename T, int Bits>
struct FewCodes {
  static_assert(Bits == 2 || Bits == 3);
  static constexpr int kBase = 1 << Bits;
  static constexpr bool kThird = Bits == 3;
  static constexpr unsigned kBytes = 512, kHighBytes = kThird ? 256 : 0;
  struct Raw {
    Pack<UInt32, 2> low;
    UInt32 high;
  };
  template <bool Copied>
  __device__ __forceinline__ static Raw load(const PackedArrays& from, const PackedPlace& place,
                                             unsigned lane) {
    const UInt64 at = packed_lane(place, lane);
    Raw raw;
    raw.low = reinterpret_cast<const Pack<UInt32, 2>*>(from.codes)[at];
    raw.high = 0;
    if constexpr (kThird) raw.high = reinterpret_cast<const UInt32*>(from.high)[at];
    return raw;
  }
  static constexpr int kPlace = PairBits<T>::kMantissa - Bits;
  static constexpr unsigned kExponent = (PairBits<T>::kBias + Bits) << PairBits<T>::kMantissa;
  __device__ __forceinline__ static void decode(const Raw& raw, int part, unsigned (&pairs)[4]) {
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const int four = p / 2, byte = p % 2 * 8;
      pairs[p] = merged(shifted(raw.low.value[four], kPlace - (byte + 2 * part)),
                        0x00030003u << kPlace, kExponent * 0x00010001u);
      if constexpr (kThird)
        pairs[p] = merged(shifted(raw.high, kPlace + 2 - (byte + 4 * four + part)),
                          0x00010001u << (kPlace + 2), pairs[p]);
    }
  }
};

}  // namespace kernwright
