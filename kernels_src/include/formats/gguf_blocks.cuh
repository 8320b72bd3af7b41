// Blocks of GGUF files to numbers, as ggml defines them.
#pragma once

#include <kernwright/elements.cuh>
#include <kernwright/weight_codes.cuh>

namespace kernwright {

template <int Align>
struct UnitTraits;
template <>
struct UnitTraits<1> {
  using Type = UInt8;
};
template <>
struct UnitTraits<2> {
  using Type = UInt16;
};
template <>
struct UnitTraits<4> {
  using Type = UInt32;
};
template <>
struct UnitTraits<8> {
  using Type = UInt64;
};

/// Eight bytes, the first lowest, in loads of Align bytes.
template <int Align>
__device__ __forceinline__ UInt64 eight(const UInt8* from) {
  using Unit = typename UnitTraits<Align>::Type;
  UInt64 bytes = 0;
#pragma unroll
  for (int i = 0; i < 8 / Align; ++i) {
    bytes |= static_cast<UInt64>(reinterpret_cast<const Unit*>(from)[i]) << (8 * Align * i % 64);
  }
  return bytes;
}

template <int Align>
__device__ __forceinline__ float half_at(const UInt8* from) {
  if constexpr (Align == 1) {
    return to_compute(Float16{static_cast<UInt16>(from[0] | from[1] << 8)});
  } else {
    return to_compute(*reinterpret_cast<const Float16*>(from));
  }
}

__device__ __forceinline__ int pick_byte(UInt64 bytes, int i) {
  return static_cast<int>(bytes >> (8 * i) & 255);
}

/// Scales and minima of eight groups of 32, six bits each, in twelve bytes.
__device__ __forceinline__ int packed_scale(const UInt8* from, int group) {
  return group < 4 ? from[group] & 63 : (from[group + 4] & 15) | (from[group - 4] >> 6) << 4;
}
__device__ __forceinline__ int packed_minimum(const UInt8* from, int group) {
  return group < 4 ? from[group + 4] & 63 : from[group + 4] >> 4 | (from[group] >> 6) << 4;
}

// Each format decodes the eight values of a block that begin at `at`, a multiple of eight. All
// products below are exact in float32.

/// Blocks of 32 with the codes of four bits behind kCodes bytes: of values i and i + 16 in a byte.
/// Fifth bits are the four bytes in front of them.
template <int kCodes, bool Fifth>
struct ShortBlock {
  static constexpr int kValues = 32, kBytes = kCodes + 16;
  static constexpr int kMost = Fifth ? 31 : 15;
  template <int Align>
  __device__ static void codes(const UInt8* block, int at, int* code) {
    const UInt64 low = eight<Align>(block + kCodes + at % 16) >> (at < 16 ? 0 : 4);
    const int fifth = Fifth ? block[kCodes - 4 + at / 8] : 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) code[i] = (pick_byte(low, i) & 15) | (fifth >> i & 1) << 4;
  }
};

/// Q4_0 and Q5_0: a half of the codes' range is taken off them.
template <int kCodes, bool Fifth>
struct Centred : ShortBlock<kCodes, Fifth> {
  static constexpr int kZero = Fifth ? 16 : 8;
  template <int Align>
  __device__ static void decode(const UInt8* block, int at, float* value) {
    const float d = half_at<Align>(block);
    int code[8];
    Centred::template codes<Align>(block, at, code);
#pragma unroll
    for (int i = 0; i < 8; ++i) value[i] = static_cast<float>(code[i] - kZero) * d;
  }
};
using Q4_0 = Centred<2, false>;
using Q5_0 = Centred<6, true>;

/// Q4_1 and Q5_1: a number is added.
template <int kCodes, bool Fifth>
struct Moved : ShortBlock<kCodes, Fifth> {
  template <int Align>
  __device__ static void decode(const UInt8* block, int at, float* value) {
    const float d = half_at<Align>(block), least = half_at<Align>(block + 2);
    int code[8];
    Moved::template codes<Align>(block, at, code);
#pragma unroll
    for (int i = 0; i < 8; ++i) value[i] = __fadd_rn(d * static_cast<float>(code[i]), least);
  }
};
using Q4_1 = Moved<4, false>;
using Q5_1 = Moved<8, true>;

struct Iq4Nl : ShortBlock<2, false> {
  template <int Align>
  __device__ static void decode(const UInt8* block, int at, float* value) {
    const float d = half_at<Align>(block);
    int code[8];
    codes<Align>(block, at, code);
#pragma unroll
    for (int i = 0; i < 8; ++i) value[i] = d * kUnevenNumbers[code[i]];
  }
};

struct Q8_0 {
  static constexpr int kValues = 32, kBytes = 34;
  template <int Align>
  __device__ static void decode(const UInt8* block, int at, float* value) {
    const float d = half_at<Align>(block);
    const UInt64 codes = eight<Align>(block + 2 + at);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      value[i] = static_cast<float>(static_cast<Int8>(pick_byte(codes, i))) * d;
    }
  }
};

/// Q4_K, and with a fifth bit of each code Q5_K.
template <bool Fifth>
struct MinimumBlock {
  static constexpr int kValues = 256, kBytes = Fifth ? 176 : 144;
  static constexpr int kMost = Fifth ? 31 : 15, kCodes = Fifth ? 48 : 16;
  template <int Align>
  __device__ static void decode(const UInt8* block, int at, float* value) {
    const int group = at / 32;
    const float scale = half_at<Align>(block) * static_cast<float>(packed_scale(block + 4, group));
    const float minimum =
        half_at<Align>(block + 2) * static_cast<float>(packed_minimum(block + 4, group));
    const UInt64 codes = eight<Align>(block + kCodes + group / 2 * 32 + at % 32) >> (group % 2 * 4);
    const UInt64 high = Fifth ? eight<Align>(block + 16 + at % 32) >> group : 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int code = (pick_byte(codes, i) & 15) | (pick_byte(high, i) & 1) << 4;
      value[i] = __fsub_rn(scale * static_cast<float>(code), minimum);
    }
  }
};
using Q4_K = MinimumBlock<false>;
using Q5_K = MinimumBlock<true>;

struct Q6_K {
  static constexpr int kValues = 256, kBytes = 210;
  template <int Align>
  __device__ static void decode(const UInt8* block, int at, float* value) {
    const int half = at / 128, quarter = at / 32 % 4, place = at % 32;
    const float scale =
        half_at<Align>(block + 208) * static_cast<float>(static_cast<Int8>(block[192 + at / 16]));
    const UInt64 low =
        eight<Align>(block + half * 64 + quarter % 2 * 32 + place) >> (quarter / 2 * 4);
    const UInt64 high = eight<Align>(block + 128 + half * 32 + place) >> (2 * quarter);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int code = (pick_byte(low, i) & 15) | (pick_byte(high, i) & 3) << 4;
      value[i] = scale * static_cast<float>(code - 32);
    }
  }
};

/// Of eight values of a block of 256: the half of it, the part of 32, and the place there.
struct Place256 {
  int half, quarter, place;
  __device__ explicit Place256(int at) : half(at / 128), quarter(at / 32 % 4), place(at % 32) {}
};

struct Q2_K {
  static constexpr int kValues = 256, kBytes = 84;
  template <int Align>
  __device__ static void decode(const UInt8* block, int at, float* value) {
    const Place256 in(at);
    const int parts = block[at / 16];
    const float scale = half_at<Align>(block + 80) * static_cast<float>(parts & 15);
    const float minimum = half_at<Align>(block + 82) * static_cast<float>(parts >> 4);
    const UInt64 codes = eight<Align>(block + 16 + in.half * 32 + in.place) >> (2 * in.quarter);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      value[i] = __fsub_rn(scale * static_cast<float>(pick_byte(codes, i) & 3), minimum);
    }
  }
};

struct Q3_K {
  static constexpr int kValues = 256, kBytes = 110;
  /// Six bits of the scale of a group of 16.
  __device__ static int six(const UInt8* from, int group) {
    return (from[group % 8] >> (group / 8 * 4) & 15) | (from[8 + group % 4] >> (group / 4 * 2) & 3)
                                                           << 4;
  }
  template <int Align>
  __device__ static void decode(const UInt8* block, int at, float* value) {
    const Place256 in(at);
    const int part = six(block + 96, at / 16) - 32;
    const float scale = half_at<Align>(block + 108) * static_cast<float>(part);
    const UInt64 low = eight<Align>(block + 32 + in.half * 32 + in.place) >> (2 * in.quarter);
    const UInt64 high = eight<Align>(block + in.place) >> (in.half * 4 + in.quarter);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int code = (pick_byte(low, i) & 3) | (pick_byte(high, i) & 1) << 2;
      value[i] = scale * static_cast<float>(code - 4);
    }
  }
};

struct Iq4Xs {
  static constexpr int kValues = 256, kBytes = 136;
  template <int Align>
  __device__ static void decode(const UInt8* block, int at, float* value) {
    const int group = at / 32;
    const int low = block[4 + group / 2] >> (group % 2 * 4) & 15;
    const int high = block[2 + group / 4] >> (group % 4 * 2) & 3;
    const float scale = half_at<Align>(block) * static_cast<float>((low | high << 4) - 32);
    const UInt64 codes = eight<Align>(block + 8 + group * 16 + at % 16) >> (at % 32 < 16 ? 0 : 4);
#pragma unroll
    for (int i = 0; i < 8; ++i) value[i] = scale * kUnevenNumbers[pick_byte(codes, i) & 15];
  }
};

}  // namespace kernwright
