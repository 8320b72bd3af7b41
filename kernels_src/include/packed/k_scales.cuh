// The scales of packed K-quants and of IQ4_XS: 256 numbers share one, and groups have parts of it.
#pragma once

#include <kernwright/packed_scales.cuh>

namespace kernwright {

/// q4_k and q5_k: for 256 values two halves, eight scales and eight minima of six bits.
struct BlockScales : ScaleDefaults {
  static constexpr unsigned kScaleBytes = 256, kMoreBytes = 0;
  static constexpr bool kPairedScales = true, kPairedMore = false;
  static constexpr int kGroup = 32, kZero = 0;
  static constexpr bool kOffset = true, kMinima = true, kUnitScales = true;
  Words raw;
  bool later;  ///< the second 128 of the 256
  __device__ __forceinline__ static BlockScales load(const PackedArrays& from,
                                                     const PackedPlace& place) {
    return {
        {}, reinterpret_cast<const Words*>(from.scales)[place.pair_record()], place.at % 2 != 0};
  }
  /// Halves as floats, scales and minima of four groups as bytes.
  struct Ready {
    float unit, minimum_unit;
    unsigned scales, minima;
    __device__ __forceinline__ float scale_at(int group) const {
      return byte_times(scales, group, unit);
    }
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

/// q6_k: a byte for 16 values times a half for 256; 32 is subtracted from the codes.
struct SixScales : ScaleDefaults {
  static constexpr unsigned kScaleBytes = 128, kMoreBytes = 32;
  static constexpr bool kPairedScales = false, kPairedMore = true;
  static constexpr int kGroup = 16, kZero = 32;
  static constexpr bool kOffset = true, kMinima = false, kCodeScales = true;
  static constexpr bool kUnitScales = true, kPlain = true;
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
    __device__ __forceinline__ float code_scale(int group, unsigned moving = kMovesBytes) const {
      const unsigned moved = __byte_perm(chosen(bytes, group / 4), moving, 0x7540 + group % 4);
      return __uint_as_float(moved) - 8388736.0f;
    }
    __device__ __forceinline__ float scale_at(int group) const { return code_scale(group) * unit; }
    __device__ __forceinline__ float block_scale() const { return unit; }
    __device__ __forceinline__ static float zero(int) { return kZero; }
    __device__ __forceinline__ static float minimum(int) { return 0; }
  };
  __device__ __forceinline__ Ready ready() const {
    return {to_compute(half), {scales.value[0] ^ 0x80808080u, scales.value[1] ^ 0x80808080u}};
  }
};

/// q2_k: four bits of a scale and four of a minimum for 16 values, two halves for 256.
struct TwoScales : ScaleDefaults {
  static constexpr unsigned kScaleBytes = 128, kMoreBytes = 64;
  static constexpr bool kPairedScales = false, kPairedMore = true;
  static constexpr int kGroup = 16, kZero = 0;
  static constexpr bool kOffset = true, kMinima = true;
  Pack<UInt32, 2> bytes;
  UInt32 halves;
  __device__ __forceinline__ static TwoScales load(const PackedArrays& from,
                                                   const PackedPlace& place) {
    return {{},
            reinterpret_cast<const Pack<UInt32, 2>*>(from.scales)[place.record()],
            reinterpret_cast<const UInt32*>(from.more)[place.pair_record()]};
  }
  struct Ready {
    float unit, minimum_unit;
    unsigned scales[2], minima[2];
    __device__ __forceinline__ float scale_at(int group) const {
      return byte_times(chosen(scales, group / 4), group % 4, unit);
    }
    __device__ __forceinline__ float minimum(int group) const {
      return byte_times(chosen(minima, group / 4), group % 4, minimum_unit);
    }
    __device__ __forceinline__ static float zero(int) { return 0; }
  };
  __device__ __forceinline__ Ready ready() const {
    Ready made;
    made.unit = to_compute(Float16{static_cast<UInt16>(halves)});
    made.minimum_unit = to_compute(Float16{static_cast<UInt16>(halves >> 16)});
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      made.scales[i] = bytes.value[i] & 0x0f0f0f0fu;
      made.minima[i] = bytes.value[i] >> 4 & 0x0f0f0f0fu;
    }
    return made;
  }
};

/// q3_k: six bits for 16 values, less 32, times a half for 256; 4 is subtracted from the codes.
struct ThreeScales : ScaleDefaults {
  static constexpr unsigned kScaleBytes = 192, kMoreBytes = 32;
  static constexpr bool kPairedScales = true, kPairedMore = true;
  static constexpr int kGroup = 16, kZero = 4;
  static constexpr bool kOffset = true, kMinima = false, kCodeScales = true;
  /// The lower four bits of 16 scales, with the second 128 values in upper halves, and all upper
  /// bits.
  struct Record {
    UInt32 word[3];
  };
  Record raw;
  Float16 half;
  bool later;  ///< the second 128 of the 256
  __device__ __forceinline__ static ThreeScales load(const PackedArrays& from,
                                                     const PackedPlace& place) {
    return {{},
            reinterpret_cast<const Record*>(from.scales)[place.pair_record()],
            reinterpret_cast<const Float16*>(from.more)[place.pair_record()],
            place.at % 2 != 0};
  }
  /// The bytes are 32 more than the scales.
  struct Ready {
    float unit;
    unsigned bytes[2];
    __device__ __forceinline__ float code_scale(int group) const {
      return byte_number(chosen(bytes, group / 4), group % 4) - 32;
    }
    __device__ __forceinline__ float scale_at(int group) const { return code_scale(group) * unit; }
    __device__ __forceinline__ float block_scale() const { return unit; }
    __device__ __forceinline__ static float zero(int) { return kZero; }
    __device__ __forceinline__ static float minimum(int) { return 0; }
  };
  __device__ __forceinline__ Ready ready() const {
    const int right = later ? 4 : 0;
    Ready made;
    made.unit = to_compute(half);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      made.bytes[i] = (raw.word[i] >> right & 0x0f0f0f0fu) |
                      (raw.word[2] >> (right + 2 * i) & 0x03030303u) << 4;
    }
    return made;
  }
};

/// iq4_xs: six bits for 32 values, less 32, times a half for 256.
struct UnevenScales : NoOffset {
  static constexpr unsigned kScaleBytes = 128, kMoreBytes = 0;
  static constexpr bool kPairedScales = true, kPairedMore = false;
  static constexpr int kGroup = 32;
  /// The half, two upper bits of eight scales, and their lower four bits.
  Pack<UInt32, 2> raw;
  bool later;  ///< the second 128 of the 256
  __device__ __forceinline__ static UnevenScales load(const PackedArrays& from,
                                                      const PackedPlace& place) {
    return {{},
            reinterpret_cast<const Pack<UInt32, 2>*>(from.scales)[place.pair_record()],
            place.at % 2 != 0};
  }
  /// The bytes are 32 more than the scales.
  struct Ready {
    float unit;
    unsigned bytes;
    __device__ __forceinline__ float scale_at(int group) const {
      return (byte_number(bytes, group) - 32) * unit;
    }
  };
  __device__ __forceinline__ Ready ready() const {
    unsigned low = later ? raw.value[1] >> 16 : raw.value[1] & 0xffffu;
    low = (low | low << 8) & 0x00ff00ffu;
    low = (low | low << 4) & 0x0f0f0f0fu;
    unsigned high = raw.value[0] >> (later ? 24 : 16) & 0xffu;
    high = (high | high << 12) & 0x000f000fu;
    high = (high | high << 6) & 0x03030303u;
    return {to_compute(Float16{static_cast<UInt16>(raw.value[0])}), low | high << 4};
  }
};

}  // namespace kernwright
