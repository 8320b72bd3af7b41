// Numbers to blocks of GGUF files, by the lanes of a warp.
#pragma once

#include <kernwright/gguf_blocks.cuh>

namespace kernwright {

/// NOTE: ptxas 13.0 takes a byte that is stored of the register of a conversion to float16 for a
/// number, and converts it to an integer (F2I.U8.F16). It does not for a register of 32 bits.
__device__ __forceinline__ void write_half(UInt8* to, Float16 value) {
  unsigned bits;
  asm("cvt.u32.u16 %0, %1;" : "=r"(bits) : "h"(value.bits));
  to[0] = static_cast<UInt8>(bits);
  to[1] = static_cast<UInt8>(bits >> 8);
}

/// The value of largest magnitude, of equal ones the first, among groups of `Lanes` lanes.
template <int Lanes>
__device__ __forceinline__ float largest_signed(float value) {
#pragma unroll
  for (int distance = 1; distance < Lanes; distance *= 2) {
    const float other = __shfl_xor_sync(~0u, value, distance);
    const bool first = (threadIdx.x & distance) == 0;
    const float a = first ? value : other, b = first ? other : value;
    value = fabsf(b) > fabsf(a) ? b : a;
  }
  return value;
}

/// NaN becomes 0.
__device__ __forceinline__ int nearest(float value, int low, int high) {
  if (value != value) return 0;
  return __float2int_rn(fminf(fmaxf(value, static_cast<float>(low)), static_cast<float>(high)));
}

/// The code of IQ4_NL's nearest number, of two the larger.
__device__ __forceinline__ int uneven_code(float value) {
  int code = 0;
#pragma unroll
  for (int i = 0; i < 15; ++i)
    code += value >= (kUnevenNumbers[i] + kUnevenNumbers[i + 1]) * 0.5f ? 1 : 0;
  return code;
}

__device__ __forceinline__ void write_eight(UInt8* to, UInt64 bytes) {
#pragma unroll
  for (int i = 0; i < 8; ++i) to[i] = static_cast<UInt8>(bytes >> (8 * i));
}

// ---- blocks of 32: a lane has a value, or 0 for NaN. As ggml's reference quantiser, but for
// iq4_nl

/// The codes of a ShortBlock.
template <typename Format>
__device__ __forceinline__ void write_codes(UInt8* block, unsigned code, unsigned lane) {
  constexpr int kCodes = Format::kBytes - 16;
  const unsigned upper = __shfl_down_sync(~0u, code, 16);
  if (lane < 16) block[kCodes + lane] = static_cast<UInt8>((code & 15) | (upper & 15) << 4);
  if constexpr (Format::kMost == 31) {
    const unsigned fifth = __ballot_sync(~0u, (code & 16) != 0);
    if (lane < 4) block[kCodes - 4 + lane] = static_cast<UInt8>(fifth >> (8 * lane));
  }
}
/// A number as a code, whose fraction is cut off; NaN as 0.
__device__ __forceinline__ unsigned cut_code(float value, int most) {
  return static_cast<unsigned>(fminf(fmaxf(value, 0.0f), static_cast<float>(most)));
}
__device__ __forceinline__ float inverse_or_zero(float d) {
  return d != 0 ? __fdiv_rn(1.0f, d) : 0.0f;
}

template <int kCodes, bool Fifth>
__device__ __forceinline__ void encode(Centred<kCodes, Fifth>, UInt8* block, float value,
                                       unsigned lane) {
  using Format = Centred<kCodes, Fifth>;
  const float d = __fdiv_rn(largest_signed<32>(value), static_cast<float>(-Format::kZero));
  if (lane == 0) write_half(block, from_compute<Float16>(d));
  const float moved = __fadd_rn(__fmul_rn(value, inverse_or_zero(d)), Format::kZero + 0.5f);
  write_codes<Format>(block, moved == moved ? cut_code(moved, Format::kMost) : Format::kZero, lane);
}

template <int kCodes, bool Fifth>
__device__ __forceinline__ void encode(Moved<kCodes, Fifth>, UInt8* block, float value,
                                       unsigned lane) {
  using Format = Moved<kCodes, Fifth>;
  float low = value, high = value;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    low = fminf(low, __shfl_xor_sync(~0u, low, distance));
    high = fmaxf(high, __shfl_xor_sync(~0u, high, distance));
  }
  const float d = __fdiv_rn(__fsub_rn(high, low), static_cast<float>(Format::kMost));
  if (lane == 0) {
    write_half(block, from_compute<Float16>(d));
    write_half(block + 2, from_compute<Float16>(low));
  }
  const float moved = __fmul_rn(__fsub_rn(value, low), inverse_or_zero(d));
  write_codes<Format>(block, cut_code(__fadd_rn(moved, 0.5f), Format::kMost), lane);
}

/// The value of largest magnitude becomes -127; codes go to nearest by the rounded scale.
__device__ __forceinline__ void encode(Iq4Nl, UInt8* block, float value, unsigned lane) {
  const Float16 d = from_compute<Float16>(__fdiv_rn(largest_signed<32>(value), -127.0f));
  if (lane == 0) write_half(block, d);
  const float unit = to_compute(d);
  const int code = uneven_code(unit != 0 ? __fdiv_rn(value, unit) : 0.0f);
  write_codes<Iq4Nl>(block, static_cast<unsigned>(code), lane);
}

/// To nearest, halves away from zero.
__device__ __forceinline__ void encode(Q8_0, UInt8* block, float value, unsigned lane) {
  const float d = __fdiv_rn(fabsf(largest_signed<32>(value)), 127.0f);
  if (lane == 0) write_half(block, from_compute<Float16>(d));
  float scaled = __fmul_rn(value, inverse_or_zero(d));
  if (scaled != scaled) scaled = 0;
  const float magnitude = fminf(truncf(fabsf(scaled)), 127.0f);
  const float rest = fabsf(scaled) - magnitude;
  const int code = min(static_cast<int>(magnitude) + (rest >= 0.5f), 127);
  block[2 + lane] = static_cast<UInt8>(scaled < 0 ? -code : code);
}

// ---- blocks of 256: a lane has eight values. Scales are rounded to nearest, then codes by them

/// A group's part of the scale of a block, and of its minimum.
struct GroupParts {
  Float16 d, dmin;
  int scale, minimum;
  float unit, shift;  ///< what the group's codes are multiplied with, and what is taken off
};

/// Groups of `Lanes` lanes from their lowest value, or 0, to their highest; codes to kCodes, scales
/// and minima to kParts.
template <int Lanes, int kCodes, int kParts>
__device__ __forceinline__ GroupParts minimum_parts(const float* value) {
  float low = 0, high = value[0];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    low = fminf(low, value[i]);
    high = fmaxf(high, value[i]);
  }
#pragma unroll
  for (int distance = 1; distance < Lanes; distance *= 2) {
    low = fminf(low, __shfl_xor_sync(~0u, low, distance));
    high = fmaxf(high, __shfl_xor_sync(~0u, high, distance));
  }
  const float range = __fdiv_rn(__fsub_rn(high, low), static_cast<float>(kCodes));
  float most = range, depth = -low;
#pragma unroll
  for (int distance = Lanes; distance < 32; distance *= 2) {
    most = fmaxf(most, __shfl_xor_sync(~0u, most, distance));
    depth = fmaxf(depth, __shfl_xor_sync(~0u, depth, distance));
  }
  GroupParts made;
  made.d = from_compute<Float16>(__fdiv_rn(most, static_cast<float>(kParts)));
  made.dmin = from_compute<Float16>(__fdiv_rn(depth, static_cast<float>(kParts)));
  const float step = to_compute(made.d), floor = to_compute(made.dmin);
  made.scale = step > 0 ? nearest(__fdiv_rn(range, step), 0, kParts) : 0;
  made.minimum = floor > 0 ? nearest(__fdiv_rn(-low, floor), 0, kParts) : 0;
  made.unit = step * static_cast<float>(made.scale);
  made.shift = floor * static_cast<float>(made.minimum);
  return made;
}
__device__ __forceinline__ int code_above(const GroupParts& parts, float value, int most) {
  const float moved = __fadd_rn(value, parts.shift);
  return parts.unit > 0 ? nearest(__fdiv_rn(moved, parts.unit), 0, most) : 0;
}

/// Groups of `Lanes` lanes whose value of largest magnitude becomes kLowest; scales from
/// -kParts to kParts - 1.
template <int Lanes, int kLowest, int kParts>
__device__ __forceinline__ GroupParts signed_parts(const float* value) {
  float most = value[0];
#pragma unroll
  for (int i = 1; i < 8; ++i) most = fabsf(value[i]) > fabsf(most) ? value[i] : most;
  const float range = __fdiv_rn(largest_signed<Lanes>(most), static_cast<float>(kLowest));
  GroupParts made = {};
  made.d = from_compute<Float16>(__fdiv_rn(largest_signed<32>(range), static_cast<float>(-kParts)));
  const float step = to_compute(made.d);
  made.scale = step != 0 ? nearest(__fdiv_rn(range, step), -kParts, kParts - 1) : 0;
  made.unit = step * static_cast<float>(made.scale);
  return made;
}
__device__ __forceinline__ float in_units(const GroupParts& parts, float value) {
  return parts.unit != 0 ? __fdiv_rn(value, parts.unit) : 0.0f;
}

template <bool Fifth>
__device__ __forceinline__ void encode(MinimumBlock<Fifth>, UInt8* block, const float* value,
                                       unsigned lane) {
  using Format = MinimumBlock<Fifth>;
  const GroupParts parts = minimum_parts<4, Format::kMost, 63>(value);
  if (lane == 0) {
    write_half(block, parts.d);
    write_half(block + 2, parts.dmin);
  }
  // Eight bytes hold the six bits of groups 0 to 3 and, above them, the two high bits of groups 4
  // to 7. Four more bytes hold the low four bits of groups 4 to 7.
  const int scale_above = __shfl_down_sync(~0u, parts.scale, 16);
  const int minimum_above = __shfl_down_sync(~0u, parts.minimum, 16);
  if (lane % 4 == 0 && lane < 16) {
    const unsigned group = lane / 4;
    block[4 + group] = static_cast<UInt8>(parts.scale | (scale_above >> 4) << 6);
    block[8 + group] = static_cast<UInt8>(parts.minimum | (minimum_above >> 4) << 6);
    block[12 + group] = static_cast<UInt8>((scale_above & 15) | (minimum_above & 15) << 4);
  }
  UInt64 codes = 0, fifth = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int code = code_above(parts, value[i], Format::kMost);
    codes |= static_cast<UInt64>(code & 15) << (8 * i);
    fifth |= static_cast<UInt64>(code >> 4) << (8 * i + lane / 4);
  }
  codes |= __shfl_down_sync(~0u, codes, 4) << 4;
  if (lane % 8 < 4) write_eight(block + Format::kCodes + lane / 8 * 32 + lane % 4 * 8, codes);
  if constexpr (Fifth) {
#pragma unroll
    for (int distance = 4; distance < 32; distance *= 2) {
      fifth |= __shfl_xor_sync(~0u, fifth, distance);
    }
    if (lane < 4) write_eight(block + 16 + lane * 8, fifth);
  }
}

/// Two bits of each code, those of the four parts of 128 values in a byte, from `to` on.
__device__ __forceinline__ void write_bit_pairs(UInt8* to, UInt64 codes, unsigned lane) {
  codes <<= 2 * (lane / 4 % 4);
  codes |= __shfl_xor_sync(~0u, codes, 4);
  codes |= __shfl_xor_sync(~0u, codes, 8);
  if (lane / 4 % 4 == 0) write_eight(to + lane / 16 * 32 + lane % 4 * 8, codes);
}

__device__ __forceinline__ void encode(Q2_K, UInt8* block, const float* value, unsigned lane) {
  const GroupParts parts = minimum_parts<2, 3, 15>(value);
  if (lane == 0) {
    write_half(block + 80, parts.d);
    write_half(block + 82, parts.dmin);
  }
  if (lane % 2 == 0) block[lane / 2] = static_cast<UInt8>(parts.scale | parts.minimum << 4);
  UInt64 codes = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    codes |= static_cast<UInt64>(code_above(parts, value[i], 3)) << (8 * i);
  write_bit_pairs(block + 16, codes, lane);
}

__device__ __forceinline__ void encode(Q3_K, UInt8* block, const float* value, unsigned lane) {
  const GroupParts parts = signed_parts<2, -4, 32>(value);
  if (lane == 0) write_half(block + 108, parts.d);
  // Eight bytes hold the low four bits of groups 0 to 7, and above them those of groups 8 to 15.
  // Four more bytes hold the two high bits of all groups.
  const int six = parts.scale + 32, above = __shfl_down_sync(~0u, six, 16);
  int high = (six >> 4) | (above >> 4) << 4;
  high |= __shfl_down_sync(~0u, high, 8) << 2;
  if (lane % 2 == 0 && lane < 16) {
    block[96 + lane / 2] = static_cast<UInt8>((six & 15) | (above & 15) << 4);
    if (lane < 8) block[104 + lane / 2] = static_cast<UInt8>(high);
  }
  UInt64 low = 0, third = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int code = nearest(in_units(parts, value[i]), -4, 3) + 4;
    low |= static_cast<UInt64>(code & 3) << (8 * i);
    third |= static_cast<UInt64>(code >> 2) << (8 * i + lane / 4);
  }
  write_bit_pairs(block + 32, low, lane);
#pragma unroll
  for (int distance = 4; distance < 32; distance *= 2) {
    third |= __shfl_xor_sync(~0u, third, distance);
  }
  if (lane < 4) write_eight(block + lane * 8, third);
}

__device__ __forceinline__ void encode(Q6_K, UInt8* block, const float* value, unsigned lane) {
  const GroupParts parts = signed_parts<2, -32, 128>(value);
  if (lane == 0) write_half(block + 208, parts.d);
  if (lane % 2 == 0) block[192 + lane / 2] = static_cast<UInt8>(parts.scale);
  UInt64 low = 0, high = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int code = nearest(in_units(parts, value[i]), -32, 31) + 32;
    low |= static_cast<UInt64>(code & 15) << (8 * i);
    high |= static_cast<UInt64>(code >> 4) << (8 * i);
  }
  low |= __shfl_down_sync(~0u, low, 8) << 4;
  const unsigned half = lane / 16, quarter = lane / 4 % 4, place = lane % 4 * 8;
  if (quarter < 2) write_eight(block + half * 64 + quarter * 32 + place, low);
  write_bit_pairs(block + 128, high, lane);
}

__device__ __forceinline__ void encode(Iq4Xs, UInt8* block, const float* value, unsigned lane) {
  const GroupParts parts = signed_parts<4, -127, 32>(value);
  if (lane == 0) write_half(block, parts.d);
  const int six = parts.scale + 32, next = __shfl_down_sync(~0u, six, 4);
  if (lane % 8 == 0) block[4 + lane / 8] = static_cast<UInt8>((six & 15) | (next & 15) << 4);
  int high = (six >> 4) << (2 * (lane / 4));
#pragma unroll
  for (int distance = 4; distance < 32; distance *= 2) {
    high |= __shfl_xor_sync(~0u, high, distance);
  }
  if (lane < 2) block[2 + lane] = static_cast<UInt8>(high >> (8 * lane));
  UInt64 codes = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    codes |= static_cast<UInt64>(uneven_code(in_units(parts, value[i]))) << (8 * i);
  codes |= __shfl_down_sync(~0u, codes, 2) << 4;
  if (lane % 4 < 2) write_eight(block + 8 + lane / 4 * 16 + lane % 4 * 8, codes);
}

}  // namespace kernwright
