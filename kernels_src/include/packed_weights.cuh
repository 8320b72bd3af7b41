// Quantised weights in the layout of their product's own kernels: what a lane reads, and how that
// becomes pairs of the type that the tensor cores take.
//
// Rows are cut into tiles of 16, k into blocks of 128; a block of a tile lies in one piece. Of the
// rows `group` and `group + 8` of a tile, four lanes each have 32 codes of a block: 8 of each part
// of 32, so that all lanes of a product of tiles are inside one group of a scale. Scales multiply
// sums in float32, and codes are exact: what is summed is what the format defines, but for NF4,
// whose 16 numbers are rounded to the pairs' type.
//
// A format is Packed<Codes, Scales, Run>: `Run` neighbours along k are a lane's, 8 or (for groups
// of 16) twice 4.
#pragma once

#include <kernwright/skinny_weights.cuh>

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
  UInt32 rows, k;
  UInt32 blocks;                                ///< of a row
  UInt32 tile_rows, tile_blocks, tiles_across;  ///< of scales that belong to tiles
  UInt32 shift;  ///< log2 of the numbers that a scale of absmax is for
};

/// Where a row is: `block` counts those of all tiles, `at` those of the tile.
struct PackedPlace {
  UInt64 block;
  UInt32 at, tile, row;  ///< `row` is 0 to 15
};

__device__ __forceinline__ float byte_as_float(unsigned bytes, int which) {
  return __uint_as_float(__byte_perm(bytes, 0x4b000000u, 0x7540 + which)) - 8388608.0f;
}

// ---- codes: load() what a lane has of a block and a row, decode() the 8 of a part

template <typename T>
struct Magic;
template <>
struct Magic<BFloat16> {
  static constexpr unsigned kBase = 0x43004300u, kOne = 0x3f803f80u, kLess = 0xc300c300u;
};
template <>
struct Magic<Float16> {
  static constexpr unsigned kBase = 0x64006400u, kOne = 0x3c003c00u, kLess = 0xe400e400u;
};

__device__ __forceinline__ UInt64 packed_lane(const PackedPlace& place, unsigned lane) {
  return (place.block * 2 + place.row / 8) * 32 + lane;
}

/// 32 codes of four bits, in 16 bytes.
struct FourBits {
  Words low;
  __device__ __forceinline__ static FourBits load(const PackedArrays& from,
                                                  const PackedPlace& place, unsigned lane) {
    return {load_once<0>(from.codes + packed_lane(place, lane) * 16)};
  }
};

/// Whole numbers of 4, 5 or 6 bits less a zero. A word has its values in the order 0, 2, 4, 6, 1,
/// 3, 5, 7; upper bits are in the same order of pairs, the later of two in the upper half.
template <typename T, int Bits>
struct WholeCodes {
  static constexpr int kHigh = Bits - 4;
  struct Raw {
    Words low;
    unsigned high[kHigh < 1 ? 1 : kHigh];
  };
  __device__ __forceinline__ static Raw load(const PackedArrays& from, const PackedPlace& place,
                                             unsigned lane) {
    Raw raw;
    raw.low = FourBits::load(from, place, lane).low;
    if constexpr (kHigh > 0) {
      const UInt64 at = packed_lane(place, lane) * (4 * kHigh);
      const auto upper = *reinterpret_cast<const Pack<UInt32, kHigh>*>(from.high + at);
#pragma unroll
      for (int i = 0; i < kHigh; ++i) raw.high[i] = upper.value[i];
    }
    return raw;
  }
  /// Above 4 bits, of pair `q` of a word of them.
  __device__ __forceinline__ static unsigned upper_bits(unsigned word, int q) {
    const int shift = 4 - kHigh * q;
    return (shift < 0 ? word >> -shift : word << shift) & (kHigh == 2 ? 0x00300030u : 0x00100010u);
  }
  __device__ __forceinline__ static void decode(const Raw& raw, int part, unsigned zero,
                                                unsigned (&pairs)[4]) {
    const unsigned less = Magic<T>::kLess + zero * 0x00010001u;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      unsigned v = raw.low.word[part] >> (4 * p) & 0x000f000fu;
      if constexpr (kHigh == 2) v |= upper_bits(raw.high[part / 2], part % 2 * 4 + p);
      if constexpr (kHigh == 1) v |= upper_bits(raw.high[0], part * 4 + p);
      pairs[p] = fma_pair(T(), v | Magic<T>::kBase, Magic<T>::kOne, less);
    }
  }
};

/// float4_e2m1, in the same order. Exponents move to their place in T, times 2^126 or 2^14 then.
template <typename T>
struct Float4Codes {
  using Raw = FourBits;
  static constexpr bool kBrain = sizeof(T) == 2 && Magic<T>::kBase == 0x43004300u;
  __device__ __forceinline__ static Raw load(const PackedArrays& from, const PackedPlace& place,
                                             unsigned lane) {
    return FourBits::load(from, place, lane);
  }
  __device__ __forceinline__ static unsigned moved(unsigned word, int left) {
    return left < 0 ? word >> -left : word << left;
  }
  __device__ __forceinline__ static void decode(const Raw& raw, int part, unsigned,
                                                unsigned (&pairs)[4]) {
    constexpr int kPlace = kBrain ? 6 : 9;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const unsigned word = raw.low.word[part];
      const unsigned bits = (moved(word, 12 - 4 * p) & 0x80008000u) |
                            (moved(word, kPlace - 4 * p) & (0x00070007u << kPlace));
      pairs[p] = fma_pair(T(), bits, kBrain ? 0x7e807e80u : 0x74007400u, 0x80008000u);
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
struct NormalCodes {
  using Raw = FourBits;
  __device__ __forceinline__ static Raw load(const PackedArrays& from, const PackedPlace& place,
                                             unsigned lane) {
    return FourBits::load(from, place, lane);
  }
  __device__ __forceinline__ static void decode(const Raw& raw, int part, unsigned,
                                                unsigned (&pairs)[4]) {
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

/// 32 codes of a byte: two times 16, all lanes' first ones in front.
template <typename Bytes>
struct ByteCodes {
  struct Raw {
    Words part[2];
  };
  __device__ __forceinline__ static Raw load(const PackedArrays& from, const PackedPlace& place,
                                             unsigned lane) {
    const UInt64 at = (place.block * 2 + place.row / 8) * 64 + lane;
    return {{load_once<0>(from.codes + at * 16), load_once<0>(from.codes + (at + 32) * 16)}};
  }
  __device__ __forceinline__ static void decode(const Raw& raw, int part, unsigned,
                                                unsigned (&pairs)[4]) {
    unsigned all[8];
    Bytes::decode(raw.part[part / 2], all);
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = all[part % 2 * 4 + i];
  }
};

// ---- scales: load() those of a row and a block, then of() a group of it. kGroup values have one.

struct NoMinimum {
  static constexpr bool kMinimum = false;
  __device__ __forceinline__ static unsigned zero(int) { return 0; }
};

/// Numbers of type E. `Zero` is that of all groups, or -1 where each has a byte of its own.
template <typename E, int Group, int Zero>
struct GroupScales {
  static constexpr int kGroup = Group, kCount = 128 / Group;
  static constexpr bool kMinimum = false;
  Pack<E, kCount> scales;
  Pack<UInt8, kCount> zeros;
  __device__ __forceinline__ static GroupScales load(const PackedArrays& from,
                                                     const PackedPlace& place) {
    GroupScales raw;
    const UInt64 at = place.block * 16 + place.row;
    raw.scales = reinterpret_cast<const Pack<E, kCount>*>(from.scales)[at];
    if constexpr (Zero < 0) raw.zeros = reinterpret_cast<const Pack<UInt8, kCount>*>(from.more)[at];
    return raw;
  }
  __device__ __forceinline__ float of(int group) const { return to_compute(scales.value[group]); }
  __device__ __forceinline__ unsigned zero(int group) const {
    return Zero < 0 ? zeros.value[group] : Zero;
  }
};

/// Bytes that stand for numbers of a table, times a scale of 256 of them, plus an offset.
template <int Group>
struct NestedScales : NoMinimum {
  static constexpr int kGroup = Group, kCount = 128 / Group;
  float scales[kCount];
  __device__ __forceinline__ static NestedScales load(const PackedArrays& from,
                                                      const PackedPlace& place) {
    NestedScales raw;
    const auto bytes =
        reinterpret_cast<const Pack<UInt8, kCount>*>(from.scales)[place.block * 16 + place.row];
    const UInt64 row = min(place.tile * 16 + place.row, from.rows - 1);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const UInt32 k = min(place.at * 128 + i * Group, from.k - 1);
      const float scale = from.absmax[(row * from.k + k) >> from.shift];
      raw.scales[i] = __fadd_rn(__fmul_rn(from.table[bytes.value[i]], scale), *from.factor);
    }
    return raw;
  }
  __device__ __forceinline__ float of(int group) const { return scales[group]; }
};

/// Of q4_k and q5_k: for 256 values two halves, eight scales and eight minima of six bits.
struct BlockScales {
  static constexpr int kGroup = 32;
  static constexpr bool kMinimum = true;
  Words raw;
  bool later;  ///< the second 128 of the 256
  __device__ __forceinline__ static BlockScales load(const PackedArrays& from,
                                                     const PackedPlace& place) {
    const UInt64 at = place.block / 2 * 16 + place.row;
    return {reinterpret_cast<const Words*>(from.scales)[at], place.block % 2 != 0};
  }
  __device__ __forceinline__ static float half(unsigned bits) {
    return to_compute(Float16{static_cast<UInt16>(bits)});
  }
  __device__ __forceinline__ float of(int group) const {
    const unsigned late = (raw.word[3] & 0x0f0f0f0fu) | (raw.word[1] >> 2 & 0x30303030u);
    const unsigned bytes = later ? late : raw.word[1] & 0x3f3f3f3fu;
    return half(raw.word[0]) * byte_as_float(bytes, group);
  }
  __device__ __forceinline__ float minimum(int group) const {
    const unsigned late = (raw.word[3] >> 4 & 0x0f0f0f0fu) | (raw.word[2] >> 2 & 0x30303030u);
    const unsigned bytes = later ? late : raw.word[2] & 0x3f3f3f3fu;
    return half(raw.word[0] >> 16) * byte_as_float(bytes, group);
  }
  __device__ __forceinline__ static unsigned zero(int) { return 0; }
};

/// Of q6_k: a byte for 16 values times a half for 256; 32 is taken off the codes.
struct SixScales {
  static constexpr int kGroup = 16;
  static constexpr bool kMinimum = false;
  Pack<Int8, 8> scales;
  Float16 half;
  __device__ __forceinline__ static SixScales load(const PackedArrays& from,
                                                   const PackedPlace& place) {
    SixScales raw;
    raw.scales = reinterpret_cast<const Pack<Int8, 8>*>(from.scales)[place.block * 16 + place.row];
    raw.half = reinterpret_cast<const Float16*>(from.more)[place.block / 2 * 16 + place.row];
    return raw;
  }
  __device__ __forceinline__ float of(int group) const {
    return to_compute(half) * static_cast<float>(scales.value[group]);
  }
  __device__ __forceinline__ static unsigned zero(int) { return 32; }
};

/// Of mxfp4: 2 to the power of (byte - 127); 255 is NaN.
struct PowerScales : NoMinimum {
  static constexpr int kGroup = 32;
  Pack<UInt8, 4> exponents;
  __device__ __forceinline__ static PowerScales load(const PackedArrays& from,
                                                     const PackedPlace& place) {
    PowerScales raw;
    raw.exponents =
        reinterpret_cast<const Pack<UInt8, 4>*>(from.scales)[place.block * 16 + place.row];
    return raw;
  }
  __device__ __forceinline__ float of(int group) const {
    const unsigned exponent = exponents.value[group];
    const unsigned bits = exponent == 0 ? 0x00400000u : exponent << 23;
    return __uint_as_float(exponent == 255 ? 0x7fc00000u : bits);
  }
};

/// Of nvfp4: a float8_e4m3fn for 16 values times one number for all.
struct TinyScales : NoMinimum {
  static constexpr int kGroup = 16;
  Pack<UInt16, 4> scales;
  float factor;
  __device__ __forceinline__ static TinyScales load(const PackedArrays& from,
                                                    const PackedPlace& place) {
    TinyScales raw;
    raw.scales =
        reinterpret_cast<const Pack<UInt16, 4>*>(from.scales)[place.block * 16 + place.row];
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
struct TileScales : NoMinimum {
  static constexpr int kGroup = 128;
  float scale;
  __device__ __forceinline__ static TileScales load(const PackedArrays& from,
                                                    const PackedPlace& place) {
    const UInt32 row = min(place.tile * 16 + place.row, from.rows - 1);
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
  static constexpr bool kMinimum = Scales::kMinimum;
  typename Codes::Raw codes;
  Scales scales;

  __device__ __forceinline__ static Packed load(const PackedArrays& from, const PackedPlace& place,
                                                unsigned lane) {
    return {Codes::load(from, place, lane), Scales::load(from, place)};
  }
  /// Of a part of 32: pairs 0 and 1 are inside its first 16 where groups have 16.
  __device__ __forceinline__ void decode(int part, unsigned (&pairs)[4]) const {
    Codes::decode(codes, part, scales.zero(part * 32 / kGroup), pairs);
  }
};

}  // namespace kernwright
