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
// exponent. The sum of x times kBase, zeros and minima is taken off a group's sum.
//
// A format is Packed<Codes, Scales, Run>: `Run` neighbours along k are a lane's, 8 or (for groups
// of 16) twice 4.
#pragma once

#include <kernwright/skinny_weights.cuh>
#include <kernwright/weight_codes.cuh>

namespace kernwright {

/// The arrays of packed weights; those that a format lacks are null.
struct PackedArrays {
  const UInt8* codes;   ///< 16 bytes of a lane follow those of the lane before
  const UInt8* high;    ///< of codes with five or six bits: the upper ones
  const UInt8* scales;  ///< of rows 0 to 15 of each block
  const UInt8* more;    ///< zeros of groups; of q6_k the scales' scales
  const float* table;   ///< nested absmax: what its bytes stand for, ...
  const float* absmax;  ///< ... their scales ...
  const float* factor;  ///< ... and the offset; of nvfp4 the scale of all
  const UInt32* order;  ///< null, or which column of the weights each one here is
  UInt32 rows, k;
  UInt32 blocks;                                ///< of a row
  UInt32 tile_rows, tile_blocks, tiles_across;  ///< of scales that belong to tiles
  UInt32 shift;  ///< log2 of the numbers that a scale of absmax is for
};

/// The place of a row: `block` counts those of all tiles, `at` those of the tile; `pair` is as
/// `block` for pairs of blocks, if a tile has whole ones. Row `line` + 8 * `half` of the tile.
struct PackedPlace {
  UInt64 block, pair;
  UInt32 at, tile, line, half;
  __device__ __forceinline__ UInt64 record() const { return block * 16 + half * 8 + line; }
  __device__ __forceinline__ UInt64 pair_record() const { return pair * 16 + half * 8 + line; }
  __device__ __forceinline__ UInt32 row(const PackedArrays& of) const {
    return min(tile * 16 + half * 8 + line, of.rows - 1);
  }
};

/// A byte, times `factor`; exactly, as the sum is rounded once.
__device__ __forceinline__ float byte_times(unsigned bytes, int which, float factor) {
  const float moved = __uint_as_float(__byte_perm(bytes, 0x4b000000u, 0x7540 + which));
  return fmaf(moved, factor, -8388608.0f * factor);
}

// ---- codes: load() what a lane has of a block and a row, decode() the 8 of a part

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
  static constexpr int kPlace = PairBits<T>::kMantissa - Bits;
  static constexpr unsigned kMask = 0x000f000fu << kPlace;
  static constexpr unsigned kExponent = (PairBits<T>::kBias + Bits) << PairBits<T>::kMantissa;

  /// The lower four bits; `mask` is kMask.
  __device__ __forceinline__ static void decode_word(unsigned word, unsigned mask,
                                                     unsigned (&pairs)[4]) {
#pragma unroll
    for (int p = 0; p < 4; ++p)
      pairs[p] = kExponent * 0x00010001u | (shifted(word, kPlace - 4 * p) & mask);
  }
  __device__ __forceinline__ static void decode(const Raw& raw, int part, unsigned (&pairs)[4]) {
    decode_word(raw.low.word[part], kMask, pairs);
    constexpr unsigned kUpper = (1u << kHigh) - 1;
    if constexpr (kHigh > 0) {
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const int pair = (kHigh == 2 ? part % 2 : part) * 4 + p;
        const unsigned word = raw.high[kHigh == 2 ? part / 2 : 0];
        pairs[p] |=
            shifted(word, kPlace + 4 - kHigh * pair) & (kUpper * 0x00010001u << (kPlace + 4));
      }
    }
  }
};

/// float4_e2m1, in the same order. Exponents move to their place in T, times 2^126 or 2^14 then.
template <typename T>
struct Float4Codes : FourBits {
  using Raw = FourBits;
  static constexpr int kBase = 0;
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

/// Looks up four codes: the lower three bits choose in both halves of a table, the fourth the half.
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
  __device__ __forceinline__ void decode(unsigned word, unsigned (&pairs)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned at = shifted(word, 7 - 8 * i) & 0x7f80u;
      pairs[i] = *reinterpret_cast<const unsigned*>(of_lane + at);
    }
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
  __device__ __forceinline__ static void decode(const Raw& raw, int part, unsigned (&pairs)[4]) {
    unsigned all[8];
    Bytes::decode(raw.part[part / 2], all);
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = all[part % 2 * 4 + i];
  }
};

// ---- scales: load() those of a row and a block; when they are there ready() has of() a group of
// it. kGroup values have one.

// kScaleBytes and kMoreBytes are those of 16 rows in a block, or in a pair of blocks if k...OfPair;
// 0 where they are no array of records.

// offset() multiplies x of a group; the product is taken off. It is the scale times the additions
// of decode() and of the format's zeros, and the minimum.

struct NoOffset {
  static constexpr bool kOffset = false;
  __device__ __forceinline__ static float zero(int) { return 0; }
  __device__ __forceinline__ static float minimum(int) { return 0; }
};

/// Numbers of type E. `Zero` is that of all groups, or -1 where each has a byte of its own.
template <typename E, int Group, int Zero>
struct GroupScales {
  static constexpr unsigned kScaleBytes = 16 * (128 / Group) * sizeof(E);
  static constexpr unsigned kMoreBytes = Zero < 0 ? 16 * (128 / Group) : 0;
  static constexpr bool kScalesOfPair = false, kMoreOfPair = false;
  using Ready = GroupScales;
  __device__ __forceinline__ const Ready& ready() const { return *this; }
  static constexpr int kGroup = Group, kCount = 128 / Group;
  static constexpr bool kOffset = Zero != 0;
  Pack<E, kCount> scales;
  Pack<UInt8, kCount> zeros;
  __device__ __forceinline__ static GroupScales load(const PackedArrays& from,
                                                     const PackedPlace& place) {
    GroupScales raw;
    const UInt64 at = place.record();
    raw.scales = reinterpret_cast<const Pack<E, kCount>*>(from.scales)[at];
    if constexpr (Zero < 0) raw.zeros = reinterpret_cast<const Pack<UInt8, kCount>*>(from.more)[at];
    return raw;
  }
  __device__ __forceinline__ float of(int group) const { return to_compute(scales.value[group]); }
  __device__ __forceinline__ float zero(int group) const {
    return Zero < 0 ? static_cast<float>(zeros.value[group]) : static_cast<float>(Zero);
  }
  __device__ __forceinline__ static float minimum(int) { return 0; }
};

/// Bytes stand for numbers of a table, times a scale of 256 of them, plus an offset. `Whole`: k is
/// a multiple of 128, so a block of a row has one such scale.
template <int Group, bool Whole>
struct NestedScales : NoOffset {
  static constexpr unsigned kScaleBytes = 16 * (128 / Group), kMoreBytes = 0;
  static constexpr bool kScalesOfPair = false, kMoreOfPair = false;
  using Ready = NestedScales;
  __device__ __forceinline__ const Ready& ready() const { return *this; }
  static constexpr int kGroup = Group, kCount = 128 / Group;
  float scales[kCount];
  __device__ __forceinline__ static NestedScales load(const PackedArrays& from,
                                                      const PackedPlace& place) {
    NestedScales raw;
    const auto bytes = reinterpret_cast<const Pack<UInt8, kCount>*>(from.scales)[place.record()];
    const UInt64 first = static_cast<UInt64>(place.row(from)) * from.k;
    const float same = from.absmax[(first + place.at * 128) >> from.shift];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      float scale = same;
      if constexpr (!Whole) {
        const UInt32 k = min(place.at * 128 + i * Group, from.k - 1);
        scale = from.absmax[(first + k) >> from.shift];
      }
      raw.scales[i] = __fadd_rn(__fmul_rn(from.table[bytes.value[i]], scale), *from.factor);
    }
    return raw;
  }
  __device__ __forceinline__ float of(int group) const { return scales[group]; }
};

/// Scales of q4_k and q5_k: for 256 values two halves, eight scales and eight minima of six bits.
struct BlockScales {
  static constexpr unsigned kScaleBytes = 256, kMoreBytes = 0;
  static constexpr bool kScalesOfPair = true, kMoreOfPair = false;
  static constexpr int kGroup = 32;
  static constexpr bool kOffset = true;
  Words raw;
  bool later;  ///< the second 128 of the 256
  __device__ __forceinline__ static BlockScales load(const PackedArrays& from,
                                                     const PackedPlace& place) {
    return {reinterpret_cast<const Words*>(from.scales)[place.pair_record()], place.at % 2 != 0};
  }
  /// Halves as floats, scales and minima of four groups as bytes.
  struct Ready {
    float unit, minimum_unit;
    unsigned scales, minima;
    __device__ __forceinline__ float of(int group) const { return byte_times(scales, group, unit); }
    __device__ __forceinline__ float minimum(int group) const {
      return byte_times(minima, group, minimum_unit);
    }
    __device__ __forceinline__ static float zero(int) { return 0; }
  };
  __device__ __forceinline__ Ready ready() const {
    Ready made;
    made.unit = to_compute(Float16{static_cast<UInt16>(raw.word[0])});
    made.minimum_unit = to_compute(Float16{static_cast<UInt16>(raw.word[0] >> 16)});
    if (later) {
      made.scales = (raw.word[3] & 0x0f0f0f0fu) | (raw.word[1] >> 2 & 0x30303030u);
      made.minima = (raw.word[3] >> 4 & 0x0f0f0f0fu) | (raw.word[2] >> 2 & 0x30303030u);
    } else {
      made.scales = raw.word[1] & 0x3f3f3f3fu;
      made.minima = raw.word[2] & 0x3f3f3f3fu;
    }
    return made;
  }
};

/// Scales of q6_k: a byte for 16 values times a half for 256; 32 is subtracted from the codes.
struct SixScales {
  static constexpr unsigned kScaleBytes = 128, kMoreBytes = 32;
  static constexpr bool kScalesOfPair = false, kMoreOfPair = true;
  static constexpr int kGroup = 16;
  static constexpr bool kOffset = true;
  Pack<UInt32, 2> scales;
  Float16 half;
  __device__ __forceinline__ static SixScales load(const PackedArrays& from,
                                                   const PackedPlace& place) {
    SixScales raw;
    raw.scales = reinterpret_cast<const Pack<UInt32, 2>*>(from.scales)[place.record()];
    raw.half = reinterpret_cast<const Float16*>(from.more)[place.pair_record()];
    return raw;
  }
  /// The bytes are 128 more than the scales.
  struct Ready {
    float unit;
    unsigned bytes[2];
    __device__ __forceinline__ float of(int group) const {
      const unsigned moved = __byte_perm(bytes[group / 4], 0x4b000000u, 0x7540 + group % 4);
      return (__uint_as_float(moved) - 8388736.0f) * unit;
    }
    __device__ __forceinline__ static float zero(int) { return 32; }
    __device__ __forceinline__ static float minimum(int) { return 0; }
  };
  __device__ __forceinline__ Ready ready() const {
    return {to_compute(half), {scales.value[0] ^ 0x80808080u, scales.value[1] ^ 0x80808080u}};
  }
};

/// Scales of mxfp4: 2 to the power of (byte - 127); 255 is NaN.
struct PowerScales : NoOffset {
  static constexpr unsigned kScaleBytes = 64, kMoreBytes = 0;
  static constexpr bool kScalesOfPair = false, kMoreOfPair = false;
  using Ready = PowerScales;
  __device__ __forceinline__ const Ready& ready() const { return *this; }
  static constexpr int kGroup = 32;
  Pack<UInt8, 4> exponents;
  __device__ __forceinline__ static PowerScales load(const PackedArrays& from,
                                                     const PackedPlace& place) {
    PowerScales raw;
    raw.exponents = reinterpret_cast<const Pack<UInt8, 4>*>(from.scales)[place.record()];
    return raw;
  }
  __device__ __forceinline__ float of(int group) const {
    return power_of_byte(exponents.value[group]);
  }
};

/// Scales of nvfp4: a float8_e4m3fn for 16 values times one number for all.
struct TinyScales : NoOffset {
  static constexpr unsigned kScaleBytes = 128, kMoreBytes = 0;
  static constexpr bool kScalesOfPair = false, kMoreOfPair = false;
  using Ready = TinyScales;
  __device__ __forceinline__ const Ready& ready() const { return *this; }
  static constexpr int kGroup = 16;
  Pack<UInt16, 4> scales;
  float factor;
  __device__ __forceinline__ static TinyScales load(const PackedArrays& from,
                                                    const PackedPlace& place) {
    TinyScales raw;
    raw.scales = reinterpret_cast<const Pack<UInt16, 4>*>(from.scales)[place.record()];
    raw.factor = *from.factor;
    return raw;
  }
  __device__ __forceinline__ float of(int group) const {
    const unsigned pair = pair_of_e4m3(Float16(), scales.value[group / 2]);
    const Float16 half{static_cast<UInt16>(group % 2 ? pair >> 16 : pair)};
    return __fmul_rn(to_compute(half), factor);
  }
};

/// A float for a tile of rows and blocks.
struct TileScales : NoOffset {
  static constexpr unsigned kScaleBytes = 0, kMoreBytes = 0;
  static constexpr bool kScalesOfPair = false, kMoreOfPair = false;
  using Ready = TileScales;
  __device__ __forceinline__ const Ready& ready() const { return *this; }
  static constexpr int kGroup = 128;
  float scale;
  __device__ __forceinline__ static TileScales load(const PackedArrays& from,
                                                    const PackedPlace& place) {
    const UInt32 row = place.row(from);
    const UInt64 tile = static_cast<UInt64>(row / from.tile_rows) * from.tiles_across;
    return {{}, reinterpret_cast<const float*>(from.scales)[tile + place.at / from.tile_blocks]};
  }
  __device__ __forceinline__ float of(int) const { return scale; }
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
  /// Decodes a part of 32: pairs 0 and 1 are inside its first 16 where groups have 16.
  __device__ __forceinline__ void decode(int part, unsigned (&pairs)[4]) const {
    Codes::decode(codes, part, pairs);
  }
  __device__ __forceinline__ static float offset(const typename Scales::Ready& scales, int group,
                                                 float scale) {
    return fmaf(scale, scales.zero(group) + Codes::kBase, scales.minimum(group));
  }
};

}  // namespace kernwright
