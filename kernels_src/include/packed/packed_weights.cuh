// Quantised weights in the layout of their product's own kernels: the codes of each lane, and their
// way to pairs of the tensor cores' type.
//
// Rows are cut into tiles of 16, k into blocks of 128; a block of a tile lies in one piece. Of the
// rows `group` and `group + 8` of a tile, four lanes each have 32 codes of a block: 8 of each part
// of 32. So all lanes of a product of tiles are inside one group of a scale. Scales multiply sums
// in float32, and codes are exact: the sums are those of the format's definition. NF4 differs: its
// 16 numbers are rounded to the pairs' type.
//
// decode() gives codes plus kBase at no cost: it sets bits at the top of a mantissa with kBase's
// exponent. Kernels take the sum of x times kBase, zeros and minima off a group's sum. Products by
// warpgroups differ (packed_wgmma_rows.cuh): kBase and zeros come off the codes in registers. Those
// of K-quants become weights there, rounded once (unit_weights.cuh).
//
// A format is Packed<Codes, Scales, Run>: `Run` neighbours along k are a lane's, 8 or (for groups
// of 16) twice 4.
#pragma once

#include <kernwright/packed_scales.cuh>
#include <kernwright/skinny_weights.cuh>

namespace kernwright {

// ---- codes: load() what a lane has of a block and a row, decode() the 8 of a part; change() is
// an exclusive or of a part's lower four bits, or bytes, with `bits`

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

/// Whole numbers of 4, 5 or 6 bits. A word has its values in the order 0, 2, 4, 6, 1,
/// 3, 5, 7; upper bits are in the same order of pairs, the later of two in the upper half.
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
  __device__ __forceinline__ static constexpr unsigned pair_with_base(unsigned code) {
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

/// float4_e2m1, in the same order. Exponents move to their place in T, times 2^126 or 2^14 then.
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

/// Of four codes: the lower three bits choose in both halves of a table, the fourth the half.
template <unsigned A, unsigned B, unsigned C, unsigned D>
__device__ __forceinline__ unsigned chosen_bytes(unsigned codes, unsigned halves) {
  return __byte_perm(__byte_perm(A, B, codes), __byte_perm(C, D, codes), halves);
}

/// The bytes of the 16 numbers of NF4, rounded to T, by code.
template <typename T>
struct NormalBytes;
template <>
struct NormalBytes<BFloat16> {
  __device__ __forceinline__ static unsigned high(unsigned codes, unsigned halves) {
    return chosen_bytes<0xbebfbfbfu, 0x00bdbebeu, 0x3e3e3e3du, 0x3f3f3f3eu>(codes, halves);
  }
  __device__ __forceinline__ static unsigned low(unsigned codes, unsigned halves) {
    return chosen_bytes<0xca063280u, 0x00ba3d92u, 0xad7c25a3u, 0x803910e2u>(codes, halves);
  }
};
template <>
struct NormalBytes<Float16> {
  __device__ __forceinline__ static unsigned high(unsigned codes, unsigned halves) {
    return chosen_bytes<0xb6b8b9bcu, 0x00adb1b4u, 0x3533312du, 0x3c393837u>(codes, halves);
  }
  __device__ __forceinline__ static unsigned low(unsigned codes, unsigned halves) {
    return chosen_bytes<0x52339200u, 0x00d4ea8du, 0x68e02618u, 0x00c9800du>(codes, halves);
  }
};

/// NF4, values in their order in a word: bytes are chosen from registers.
template <typename T>
struct NormalCodes : FourBits {
  static constexpr int kBase = 0;
  using Raw = FourBits;
  __device__ __forceinline__ static void decode(const Raw& raw, int part, unsigned (&pairs)[4]) {
    const unsigned word = raw.low.word[part], codes = word & 0x77777777u;
    const unsigned halves = (word >> 1 & 0x44444444u) | 0x32103210u;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const unsigned high = NormalBytes<T>::high(codes >> (16 * i), halves >> (16 * i));
      const unsigned low = NormalBytes<T>::low(codes >> (16 * i), halves >> (16 * i));
      pairs[2 * i] = __byte_perm(low, high, 0x5140);
      pairs[2 * i + 1] = __byte_perm(low, high, 0x7362);
    }
  }
};

/// The same from a table in shared memory, of the pairs that two codes stand for: each lane has its
/// own, so that no two of them want the same bank.
struct PairTable {
  static constexpr unsigned kBytes = 256 * 32 * 4;
  const unsigned char* of_lane;

  /// By all threads of a block, which must meet before the table is read.
  template <typename T>
  __device__ __forceinline__ static void fill(unsigned char* table) {
    for (unsigned i = threadIdx.x; i < kBytes / 16; i += blockDim.x) {
      const unsigned codes = i / 8, halves = (codes >> 1 & 0x44u) | 0x3210u;
      const unsigned high = NormalBytes<T>::high(codes & 0x77u, halves);
      const unsigned low = NormalBytes<T>::low(codes & 0x77u, halves);
      const unsigned pair = __byte_perm(low, high, 0x5140);
      reinterpret_cast<Words*>(table)[i] = {pair, pair, pair, pair};
    }
  }
  /// `place`: two codes, times 128.
  __device__ __forceinline__ unsigned at(unsigned place) const {
    return *reinterpret_cast<const unsigned*>(of_lane + place);
  }
  __device__ __forceinline__ void decode(unsigned word, unsigned (&pairs)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = at(shifted(word, 7 - 8 * i) & 0x7f80u);
  }
};
template <typename Codes>
struct TakesPairTable {
  static constexpr bool kValue = false;
};
template <typename T>
struct TakesPairTable<NormalCodes<T>> {
  static constexpr bool kValue = true;
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

// ---- formats

template <typename CodesOf, typename ScalesOf, int RunOf>
struct Packed {
  using Codes = CodesOf;
  using Scales = ScalesOf;
  static constexpr int kRun = RunOf, kGroup = Scales::kGroup;
  static constexpr bool kOffset = Scales::kOffset || Codes::kBase != 0;
  typename Codes::Raw codes;
  Scales scales;

  /// `Copied`: the arrays but for those of factors are copies in shared memory.
  template <bool Copied = false>
  __device__ __forceinline__ static Packed load(const PackedArrays& from, const PackedPlace& place,
                                                unsigned lane) {
    return {Codes::template load<Copied>(from, place, lane), Scales::load(from, place)};
  }
  /// Of a part of 32: pairs 0 and 1 are inside its first 16 where groups have 16.
  __device__ __forceinline__ void decode(int part, unsigned (&pairs)[4]) const {
    Codes::decode(codes, part, pairs);
  }
  __device__ __forceinline__ static float offset(const typename Scales::Ready& scales, int group,
                                                 float scale) {
    return fmaf(scale, scales.zero(group) + Codes::kBase, scales.minimum(group));
  }
};

}  // namespace kernwright
