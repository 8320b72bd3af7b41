// The codes of packed weights, in the layout that packed_weights.cuh tells.
#pragma once

#include <kernwright/packed_arrays.cuh>
#include <kernwright/skinny_weights.cuh>

namespace kernwright {

// load() gives what a lane has of a block and a row, decode() the 8 of a part; change() is an
// exclusive or of a part's lower four bits, or bytes, with `bits`.

/// Bits of the mantissa, of a number's exponent that is 0, and 1 in both halves.
template <typename T>
struct PairBits;
template <>
struct PairBits<BFloat16> {
  static constexpr int kMantissa = 7, kBias = 127;
  static constexpr unsigned kOne = 0x3f803f80u;
};
template <>
struct PairBits<Float16> {
  static constexpr int kMantissa = 10, kBias = 15;
  static constexpr unsigned kOne = 0x3c003c00u;
};

__device__ __forceinline__ unsigned shifted(unsigned word, int left) {
  return left < 0 ? word >> -left : word << left;
}

/// (word & mask) | rest: one instruction, of which the compiler would else make two.
__device__ __forceinline__ unsigned merged(unsigned word, unsigned mask, unsigned rest) {
  unsigned made;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(made) : "r"(word), "r"(mask), "r"(rest));
  return made;
}

__device__ __forceinline__ UInt64 packed_lane(const PackedPlace& place, unsigned lane) {
  return (place.block * 2 + place.half) * 32 + lane;
}

/// 16 bytes of codes, from global memory or from a copy in shared memory.
template <bool Copied>
__device__ __forceinline__ Words read_codes(const UInt8* at) {
  if constexpr (Copied) {
    return *reinterpret_cast<const Words*>(at);
  } else {
    return load_once<0>(at);
  }
}

/// 32 codes of four bits, in 16 bytes.
struct FourBits {
  static constexpr unsigned kBytes = 1024, kHighBytes = 0;  ///< of a tile and a block
  Words low;
  template <bool Copied>
  __device__ __forceinline__ static FourBits load(const PackedArrays& from,
                                                  const PackedPlace& place, unsigned lane) {
    return {read_codes<Copied>(from.codes + packed_lane(place, lane) * 16)};
  }
  __device__ __forceinline__ static void change(FourBits& raw, int part, unsigned bits) {
    raw.low.word[part] ^= bits;
  }
};

/// Whole numbers of 4, 5 or 6 bits. A word has values in the order 0, 2, 4, 6, 1, 3, 5, 7; upper
/// bits are in an equal order of pairs, the later pair in the upper half.
template <typename T, int Bits>
struct WholeCodes {
  static constexpr int kHigh = Bits - 4, kBase = 1 << Bits;
  static constexpr unsigned kBytes = 1024, kHighBytes = 256 * kHigh;
  struct Raw {
    Words low;
    unsigned high[kHigh < 1 ? 1 : kHigh];
  };
  template <bool Copied>
  __device__ __forceinline__ static Raw load(const PackedArrays& from, const PackedPlace& place,
                                             unsigned lane) {
    Raw raw;
    raw.low = FourBits::load<Copied>(from, place, lane).low;
    if constexpr (kHigh > 0) {
      const UInt64 at = packed_lane(place, lane) * (4 * kHigh);
      const auto upper = *reinterpret_cast<const Pack<UInt32, kHigh>*>(from.high + at);
#pragma unroll
      for (int i = 0; i < kHigh; ++i) raw.high[i] = upper.value[i];
    }
    return raw;
  }
  __device__ __forceinline__ static void change(Raw& raw, int part, unsigned bits) {
    raw.low.word[part] ^= bits;
  }
  static constexpr int kPlace = PairBits<T>::kMantissa - Bits;
  static constexpr unsigned kMask = 0x000f000fu << kPlace;
  static constexpr unsigned kExponent = (PairBits<T>::kBias + Bits) << PairBits<T>::kMantissa;

  /// `code` plus kBase, in both halves.
  __device__ __forceinline__ static constexpr unsigned based_pair(unsigned code) {
    return (kExponent | code << kPlace) * 0x00010001u;
  }
  /// The lower four bits; `mask` is kMask. `kPlain`: without kBase, as subnormal numbers.
  template <bool kPlain>
  __device__ __forceinline__ static void decode_word(unsigned word, unsigned mask,
                                                     unsigned (&pairs)[4]) {
#pragma unroll
    for (int p = 0; p < 4; ++p)
      pairs[p] = merged(shifted(word, kPlace - 4 * p), mask, kPlain ? 0 : kExponent * 0x00010001u);
  }
  __device__ __forceinline__ static void decode(const Raw& raw, int part, unsigned (&pairs)[4]) {
    decode_masked(raw, part, kMask, pairs);
  }
  /// `mask` is kMask: a constant would be moved to a register before each use.
  template <bool kPlain = false>
  __device__ __forceinline__ static void decode_masked(const Raw& raw, int part, unsigned mask,
                                                       unsigned (&pairs)[4]) {
    decode_word<kPlain>(raw.low.word[part], mask, pairs);
    constexpr unsigned kUpper = (1u << kHigh) - 1;
    if constexpr (kHigh > 0) {
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const int pair = (kHigh == 2 ? part % 2 : part) * 4 + p;
        const unsigned word = raw.high[kHigh == 2 ? part / 2 : 0];
        pairs[p] = merged(shifted(word, kPlace + 4 - kHigh * pair),
                          kUpper * 0x00010001u << (kPlace + 4), pairs[p]);
      }
    }
  }
};

/// What decode_masked() wants; 0 for codes without it.
template <typename Codes>
struct CodeMask {
  static constexpr unsigned kValue = 0;
};
template <typename T, int Bits>
struct CodeMask<WholeCodes<T, Bits>> {
  static constexpr unsigned kValue = WholeCodes<T, Bits>::kMask;
};

/// float4_e2m1 in an equal order. Exponents are shifted to T's exponent, then multiplied by 2^126
/// or 2^14.
template <typename T>
struct Float4Codes : FourBits {
  using Raw = FourBits;
  static constexpr int kBase = 0;
  /// The pair whose signs are the uppermost bits of both halves.
  __device__ __forceinline__ static unsigned moved(unsigned word) {
    constexpr int kPlace = PairBits<T>::kMantissa - 1;
    constexpr unsigned kPower = (2 * PairBits<T>::kBias - 1) << PairBits<T>::kMantissa;
    const unsigned bits = (word & 0x80008000u) | (word >> (12 - kPlace) & (0x00070007u << kPlace));
    return fma_pair(T(), bits, kPower * 0x00010001u, 0x80008000u);
  }
  __device__ __forceinline__ static void decode(const Raw& raw, int part, unsigned (&pairs)[4]) {
    constexpr int kPlace = PairBits<T>::kMantissa - 1;
    constexpr unsigned kPower = (2 * PairBits<T>::kBias - 1) << PairBits<T>::kMantissa;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const unsigned word = raw.low.word[part];
      const unsigned bits = (shifted(word, 12 - 4 * p) & 0x80008000u) |
                            (shifted(word, kPlace - 4 * p) & (0x00070007u << kPlace));
      pairs[p] = fma_pair(T(), bits, kPower * 0x00010001u, 0x80008000u);
    }
  }
};

/// 32 codes of a byte: two times 16, all lanes' first ones in front.
template <typename Bytes>
struct ByteCodes {
  static constexpr int kBase = 0;
  static constexpr unsigned kBytes = 2048, kHighBytes = 0;
  struct Raw {
    Words part[2];
  };
  template <bool Copied>
  __device__ __forceinline__ static Raw load(const PackedArrays& from, const PackedPlace& place,
                                             unsigned lane) {
    const UInt8* const at = from.codes + ((place.block * 2 + place.half) * 64 + lane) * 16;
    return {{read_codes<Copied>(at), read_codes<Copied>(at + 512)}};
  }
  __device__ __forceinline__ static void change(Raw& raw, int part, unsigned bits) {
    for (int i = 0; i < 2; ++i) raw.part[part / 2].word[part % 2 * 2 + i] ^= bits;
  }
  __device__ __forceinline__ static void decode(const Raw& raw, int part, unsigned (&pairs)[4]) {
    unsigned all[8];
    Bytes::decode(raw.part[part / 2], all);
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = all[part % 2 * 4 + i];
  }
};

}  // namespace kernwright
