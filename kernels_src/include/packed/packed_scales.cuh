// The scales of packed weights in the layout that packed_weights.cuh tells.
#pragma once

#include <kernwright/packed_arrays.cuh>
#include <kernwright/skinny_weights.cuh>
#include <kernwright/weight_codes.cuh>

namespace kernwright {

constexpr unsigned kMovesBytes = 0x4b000000u;  ///< 2^23, in whose mantissa a byte is a number

/// A byte as a number.
__device__ __forceinline__ float byte_number(unsigned bytes, int which) {
  return __uint_as_float(__byte_perm(bytes, kMovesBytes, 0x7540 + which)) - 8388608.0f;
}
/// A byte, times `factor`; exactly, as the sum is rounded once. `moving` is kMovesBytes.
__device__ __forceinline__ float byte_times(unsigned bytes, int which, float factor,
                                            unsigned moving = kMovesBytes) {
  const float moved = __uint_as_float(__byte_perm(bytes, moving, 0x7540 + which));
  return fmaf(moved, factor, -8388608.0f * factor);
}

/// Element `at` of a few, in registers though `at` may be no constant.
template <typename E, int N>
__device__ __forceinline__ E chosen(const E (&values)[N], int at) {
  E value = values[0];
#pragma unroll
  for (int i = 1; i < N; ++i) value = at == i ? values[i] : value;
  return value;
}

// ---- scales: load() reads the scales of a row and a block; ready() then returns an object whose
// scale_at() gives the scale of a group. kGroup values have one scale.

// kScaleBytes and kMoreBytes count the bytes of 16 rows in a block, or in a pair of blocks with
// kPairedScales and kPairedMore; 0 where the scales are no array of records.

// offset() multiplies x of a group; the product is subtracted. It is the scale times the additions
// of decode() and of the format's zeros, and the minimum. kMinima: there are minima; kZero:
// the zero of all groups, or -1 where they differ.

// kExact<T>: products by warpgroups multiply a group's codes with code_scale() (kCodeScales) or
// pair<T>(), and all accumulators with what is left; T holds the products. kUnitScales:
// unit_weights.cuh makes weights of codes, and of those without kBase if kPlain. kFar: load() reads
// arrays that no stage has. Products with stages read those by early() ahead, and make scales by
// late() with copies of the stage's arrays and of the table of kTableBytes.

struct ScaleDefaults {
  static constexpr bool kCodeScales = false, kFar = false, kUnitScales = false, kPlain = false;
  template <typename T>
  static constexpr bool kExact = false;
};
struct NoOffset : ScaleDefaults {
  static constexpr bool kOffset = false, kMinima = false;
  static constexpr int kZero = 0;
  __device__ __forceinline__ static float zero(int) { return 0; }
  __device__ __forceinline__ static float minimum(int) { return 0; }
};

/// Numbers of type E. `Zero` is the zero of all groups, or -1 where each group has a byte.
template <typename E, int Group, int Zero>
struct GroupScales : ScaleDefaults {
  static constexpr unsigned kScaleBytes = 16 * (128 / Group) * sizeof(E);
  static constexpr unsigned kMoreBytes = Zero < 0 ? 16 * (128 / Group) : 0;
  static constexpr bool kPairedScales = false, kPairedMore = false;
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
  __device__ __forceinline__ float scale_at(int group) const {
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
  static constexpr bool kPairedScales = false, kPairedMore = false;
  using Ready = NestedScales;
  __device__ __forceinline__ const Ready& ready() const { return *this; }
  static constexpr bool kFar = true;
  static constexpr int kGroup = Group, kCount = 128 / Group;
  static constexpr unsigned kTableBytes = 1024;
  float scales[kCount];

  struct Early {
    float absmax[Whole ? 1 : kCount];
  };
  __device__ __forceinline__ static Early early(const PackedArrays& from,
                                                const PackedPlace& place) {
    Early raw;
    const UInt64 first = static_cast<UInt64>(place.row(from)) * from.k;
#pragma unroll
    for (int i = 0; i < (Whole ? 1 : kCount); ++i) {
      const UInt32 k = place.at * 128 + i * Group;
      raw.absmax[i] = from.absmax[(first + (Whole ? k : min(k, from.k - 1))) >> from.shift];
    }
    return raw;
  }
  /// `from` may be copies. `table` and `offset` as in PackedArrays.
  __device__ __forceinline__ static NestedScales late(const Early& raw, const PackedArrays& from,
                                                      const PackedPlace& place, const float* table,
                                                      float offset) {
    const auto bytes = reinterpret_cast<const Pack<UInt8, kCount>*>(from.scales)[place.record()];
    NestedScales made;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float scale = raw.absmax[Whole ? 0 : i];
      made.scales[i] = __fadd_rn(__fmul_rn(table[bytes.value[i]], scale), offset);
    }
    return made;
  }
  __device__ __forceinline__ static NestedScales load(const PackedArrays& from,
                                                      const PackedPlace& place) {
    return late(early(from, place), from, place, from.table, *from.factor);
  }
  __device__ __forceinline__ float scale_at(int group) const { return chosen(scales, group); }
};

/// q4_1 and q5_1: a scale and an addend, which is a minimum below zero.
struct AddedScales : ScaleDefaults {
  static constexpr unsigned kScaleBytes = 256, kMoreBytes = 0;
  static constexpr bool kPairedScales = false, kPairedMore = false;
  using Ready = AddedScales;
  __device__ __forceinline__ const Ready& ready() const { return *this; }
  static constexpr int kGroup = 32, kZero = 0;
  static constexpr bool kOffset = true, kMinima = true;
  Words halves;  ///< of each group the scale, and the number in the upper half
  __device__ __forceinline__ static AddedScales load(const PackedArrays& from,
                                                     const PackedPlace& place) {
    return {{}, reinterpret_cast<const Words*>(from.scales)[place.record()]};
  }
  __device__ __forceinline__ float scale_at(int group) const {
    return to_compute(Float16{static_cast<UInt16>(chosen(halves.word, group))});
  }
  __device__ __forceinline__ float minimum(int group) const {
    return -to_compute(Float16{static_cast<UInt16>(chosen(halves.word, group) >> 16)});
  }
  __device__ __forceinline__ static float zero(int) { return 0; }
};

/// Whether T has each power of two that a byte stands for.
__device__ constexpr bool holds_powers(BFloat16) { return true; }
__device__ constexpr bool holds_powers(Float16) { return false; }

/// mxfp4: 2 to the power of (byte - 127); 255 is NaN.
struct PowerScales : NoOffset {
  static constexpr unsigned kScaleBytes = 64, kMoreBytes = 0;
  static constexpr bool kPairedScales = false, kPairedMore = false;
  using Ready = PowerScales;
  __device__ __forceinline__ const Ready& ready() const { return *this; }
  static constexpr int kGroup = 32;
  template <typename T>
  static constexpr bool kExact = holds_powers(T());
  Pack<UInt8, 4> exponents;
  __device__ __forceinline__ static PowerScales load(const PackedArrays& from,
                                                     const PackedPlace& place) {
    PowerScales raw;
    raw.exponents = reinterpret_cast<const Pack<UInt8, 4>*>(from.scales)[place.record()];
    return raw;
  }
  __device__ __forceinline__ float scale_at(int group) const {
    return byte_power(chosen(exponents.value, group));
  }
  /// The byte is the exponent of a bfloat16, too, but for a subnormal number and NaN.
  template <typename T>
  __device__ __forceinline__ unsigned pair(int group) const {
    const unsigned byte = chosen(exponents.value, group);
    return (byte << 7 | (byte - 1 >= 254 ? 0x40 : 0)) * 0x00010001u;
  }
};

/// nvfp4: a float8_e4m3fn for 16 values times one number for all.
struct TinyScales : NoOffset {
  static constexpr unsigned kScaleBytes = 128, kMoreBytes = 0;
  static constexpr bool kPairedScales = false, kPairedMore = false;
  using Ready = TinyScales;
  __device__ __forceinline__ const Ready& ready() const { return *this; }
  static constexpr bool kCodeScales = true;
  template <typename T>
  static constexpr bool kExact = true;
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
  __device__ __forceinline__ float code_scale(int group) const {
    const unsigned pair = round_pair(Float16(), Float8E4M3(), chosen(scales.value, group / 2));
    return to_compute(Float16{static_cast<UInt16>(group % 2 ? pair >> 16 : pair)});
  }
  __device__ __forceinline__ float scale_at(int group) const {
    return __fmul_rn(code_scale(group), factor);
  }
  __device__ __forceinline__ float block_scale() const { return factor; }
};

/// A float for a tile of rows and blocks.
struct TileScales : NoOffset {
  static constexpr unsigned kScaleBytes = 0, kMoreBytes = 0;
  static constexpr bool kPairedScales = false, kPairedMore = false;
  static constexpr bool kFar = true;
  using Ready = TileScales;
  __device__ __forceinline__ const Ready& ready() const { return *this; }
  static constexpr int kGroup = 128;
  static constexpr unsigned kTableBytes = 0;
  float scale;
  using Early = TileScales;
  __device__ __forceinline__ static Early early(const PackedArrays& from,
                                                const PackedPlace& place) {
    return load(from, place);
  }
  __device__ __forceinline__ static TileScales late(const Early& raw, const PackedArrays&,
                                                    const PackedPlace&, const float*, float) {
    return raw;
  }
  __device__ __forceinline__ static TileScales load(const PackedArrays& from,
                                                    const PackedPlace& place) {
    const UInt32 row = place.row(from);
    const UInt64 tile = static_cast<UInt64>(row / from.tile_rows) * from.tiles_across;
    return {{}, reinterpret_cast<const float*>(from.scales)[tile + place.at / from.tile_blocks]};
  }
  __device__ __forceinline__ float scale_at(int) const { return scale; }
};

}  // namespace kernwright
