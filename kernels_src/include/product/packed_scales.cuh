// The scales of packed weights in the layout that packed_weights.cuh tells.
#pragma once

#include <kernwright/packed_arrays.cuh>
#include <kernwright/skinny_weights.cuh>
#include <kernwright/weight_codes.cuh>

namespace kernwright {

/// A byte, times `factor`; exactly, as the sum is rounded once.
__device__ __forceinline__ float byte_times(unsigned bytes, int which, float factor) {
  const float moved = __uint_as_float(__byte_perm(bytes, 0x4b000000u, 0x7540 + which));
  return fmaf(moved, factor, -8388608.0f * factor);
}

/// Element `at` of a few, in registers though `at` may be no constant.
template <typename E, int N>
__device__ __forceinline__ E chosen(const E (&of)[N], int at) {
  E value = of[0];
#pragma unroll
  for (int i = 1; i < N; ++i) value = at == i ? of[i] : value;
  return value;
}

// ---- scales: load() those of a row and a block; when they are there ready() has of() a group of
// it. kGroup values have one.

// kScaleBytes and kMoreBytes are those of 16 rows in a block, or in a pair of blocks if k...OfPair;
// 0 where they are no array of records.

// offset() multiplies x of a group; the product is taken off. It is the scale times the additions
// of decode() and of the format's zeros, and the minimum. kMinima: there are minima; kZero:
// the zero of all groups, or -1 where they differ.

// kOfCodes: products by warpgroups multiply a group's codes with of_codes(), one of T's numbers,
// and a block's sums with of_block(). kFar: load() reads tables in global memory, so those products
// load ahead.

struct OfSums {
  static constexpr bool kOfCodes = false, kFar = false;
};
struct NoOffset : OfSums {
  static constexpr bool kOffset = false, kMinima = false;
  static constexpr int kZero = 0;
  __device__ __forceinline__ static float zero(int) { return 0; }
  __device__ __forceinline__ static float minimum(int) { return 0; }
};

/// Numbers of type E. `Zero` is that of all groups, or -1 where each has a byte of its own.
template <typename E, int Group, int Zero>
struct GroupScales : OfSums {
  static constexpr unsigned kScaleBytes = 16 * (128 / Group) * sizeof(E);
  static constexpr unsigned kMoreBytes = Zero < 0 ? 16 * (128 / Group) : 0;
  static constexpr bool kScalesOfPair = false, kMoreOfPair = false;
  using Ready = GroupScales;
  __device__ __forceinline__ const Ready& ready() const { return *this; }
  static constexpr int kGroup = Group, kCount = 128 / Group;
  static constexpr bool kOffset = Zero != 0, kMinima = false;
  static constexpr int kZero = Zero;
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
  __device__ __forceinline__ float of(int group) const {
    return to_compute(chosen(scales.value, group));
  }
  __device__ __forceinline__ float zero(int group) const {
    return static_cast<float>(Zero < 0 ? chosen(zeros.value, group) : Zero);
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
  static constexpr bool kFar = true;
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
  __device__ __forceinline__ float of(int group) const { return chosen(scales, group); }
};

/// Of q4_k and q5_k: for 256 values two halves, eight scales and eight minima of six bits.
struct BlockScales {
  static constexpr unsigned kScaleBytes = 256, kMoreBytes = 0;
  static constexpr bool kScalesOfPair = true, kMoreOfPair = false;
  static constexpr int kGroup = 32, kZero = 0;
  static constexpr bool kOffset = true, kMinima = true, kOfCodes = false, kFar = false;
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

/// Of q6_k: a byte for 16 values times a half for 256; 32 is taken off the codes.
struct SixScales {
  static constexpr unsigned kScaleBytes = 128, kMoreBytes = 32;
  static constexpr bool kScalesOfPair = false, kMoreOfPair = true;
  static constexpr int kGroup = 16, kZero = 32;
  static constexpr bool kOffset = true, kMinima = false, kOfCodes = true, kFar = false;
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
    __device__ __forceinline__ float of_codes(int group) const {
      const unsigned moved = __byte_perm(chosen(bytes, group / 4), 0x4b000000u, 0x7540 + group % 4);
      return __uint_as_float(moved) - 8388736.0f;
    }
    __device__ __forceinline__ float of(int group) const { return of_codes(group) * unit; }
    __device__ __forceinline__ float of_block() const { return unit; }
    __device__ __forceinline__ static float zero(int) { return kZero; }
    __device__ __forceinline__ static float minimum(int) { return 0; }
  };
  __device__ __forceinline__ Ready ready() const {
    return {to_compute(half), {scales.value[0] ^ 0x80808080u, scales.value[1] ^ 0x80808080u}};
  }
};

/// Of mxfp4: 2 to the power of (byte - 127); 255 is NaN.
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
    return power_of_byte(chosen(exponents.value, group));
  }
};

/// Of nvfp4: a float8_e4m3fn for 16 values times one number for all.
struct TinyScales : NoOffset {
  static constexpr unsigned kScaleBytes = 128, kMoreBytes = 0;
  static constexpr bool kScalesOfPair = false, kMoreOfPair = false;
  using Ready = TinyScales;
  __device__ __forceinline__ const Ready& ready() const { return *this; }
  static constexpr bool kOfCodes = true;
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
  __device__ __forceinline__ float of_codes(int group) const {
    const unsigned pair = pair_of(Float16(), Float8E4M3(), chosen(scales.value, group / 2));
    return to_compute(Float16{static_cast<UInt16>(group % 2 ? pair >> 16 : pair)});
  }
  __device__ __forceinline__ float of(int group) const {
    return __fmul_rn(of_codes(group), factor);
  }
  __device__ __forceinline__ float of_block() const { return factor; }
};

/// A float for a tile of rows and blocks.
struct TileScales : NoOffset {
  static constexpr unsigned kScaleBytes = 0, kMoreBytes = 0;
  static constexpr bool kScalesOfPair = false, kMoreOfPair = false;
  static constexpr bool kFar = true;
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

}  // namespace kernwright
