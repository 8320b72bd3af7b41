// Blocks of GGUF files to numbers and back, as ggml defines them.
#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>

using namespace kernwright;

constexpr int kThreads = 256;
constexpr unsigned kAll = 0xffffffffu;

template <int Align>
struct UnitOf;
template <>
struct UnitOf<1> {
  using Type = UInt8;
};
template <>
struct UnitOf<2> {
  using Type = UInt16;
};
template <>
struct UnitOf<8> {
  using Type = UInt64;
};

/// Eight bytes, the first lowest, in loads of Align bytes.
template <int Align>
__device__ __forceinline__ UInt64 eight(const UInt8* from) {
  using Unit = typename UnitOf<Align>::Type;
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

__device__ __forceinline__ int byte_of(UInt64 bytes, int i) {
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

struct Q4_0 {
  static constexpr int kValues = 32, kBytes = 18, kAlign = 2;
  template <int Align>
  __device__ static void decode(const UInt8* block, int at, float* value) {
    const float d = half_at<Align>(block);
    const UInt64 codes = eight<Align>(block + 2 + at % 16) >> (at < 16 ? 0 : 4);
#pragma unroll
    for (int i = 0; i < 8; ++i) value[i] = static_cast<float>((byte_of(codes, i) & 15) - 8) * d;
  }
};

struct Q8_0 {
  static constexpr int kValues = 32, kBytes = 34, kAlign = 2;
  template <int Align>
  __device__ static void decode(const UInt8* block, int at, float* value) {
    const float d = half_at<Align>(block);
    const UInt64 codes = eight<Align>(block + 2 + at);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      value[i] = static_cast<float>(static_cast<Int8>(byte_of(codes, i))) * d;
    }
  }
};

/// Q4_K, and with a fifth bit of each code Q5_K.
template <bool Fifth>
struct WithMinimum {
  static constexpr int kValues = 256, kBytes = Fifth ? 176 : 144, kAlign = 8;
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
      const int code = (byte_of(codes, i) & 15) | (byte_of(high, i) & 1) << 4;
      value[i] = __fsub_rn(scale * static_cast<float>(code), minimum);
    }
  }
};
using Q4_K = WithMinimum<false>;
using Q5_K = WithMinimum<true>;

struct Q6_K {
  static constexpr int kValues = 256, kBytes = 210, kAlign = 2;
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
      const int code = (byte_of(low, i) & 15) | (byte_of(high, i) & 3) << 4;
      value[i] = scale * static_cast<float>(code - 32);
    }
  }
};

/// Eight values a thread and step; `count` is a multiple of the format's block.
template <typename Format, typename T, int Align>
__global__ void __launch_bounds__(kThreads)
    dequantize_blocks(T* out, const UInt8* in, UInt64 count) {
  const UInt64 step = static_cast<UInt64>(gridDim.x) * kThreads * 8;
  for (UInt64 at = (static_cast<UInt64>(blockIdx.x) * kThreads + threadIdx.x) * 8; at < count;
       at += step) {
    const UInt8* const block = in + at / Format::kValues * Format::kBytes;
    float value[8];
    Format::template decode<Align>(block, static_cast<int>(at % Format::kValues), value);
    constexpr int kWidth = 16 / sizeof(T) < 8 ? 16 / sizeof(T) : 8;
#pragma unroll
    for (int i = 0; i < 8; i += kWidth) {
      Pack<T, kWidth> pack;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) pack.value[k] = from_compute<T>(value[i + k]);
      *reinterpret_cast<Pack<T, kWidth>*>(out + at + i) = pack;
    }
  }
}

// ---- numbers to blocks: a warp a block

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
    const float other = __shfl_xor_sync(kAll, value, distance);
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

/// Blocks of 32, a lane a value; as ggml's reference quantiser.
template <bool Bytes>
__device__ __forceinline__ void quantize_32(UInt8* block, float value, unsigned lane) {
  const float number = value == value ? value : 0.0f;
  const float most = largest_signed<32>(number);
  const float d = Bytes ? __fdiv_rn(fabsf(most), 127.0f) : __fdiv_rn(most, -8.0f);
  const float inverse = d != 0 ? __fdiv_rn(1.0f, d) : 0.0f;
  if (lane == 0) write_half(block, from_compute<Float16>(d));
  float scaled = __fmul_rn(number, inverse);
  if (scaled != scaled) scaled = 0;
  if (Bytes) {
    // To nearest, halves away from zero.
    const float magnitude = fminf(truncf(fabsf(scaled)), 127.0f);
    const float rest = fabsf(scaled) - magnitude;
    const int code = min(static_cast<int>(magnitude) + (rest >= 0.5f), 127);
    block[2 + lane] = static_cast<UInt8>(scaled < 0 ? -code : code);
  } else {
    const float moved = fminf(fmaxf(__fadd_rn(scaled, 8.5f), 0.0f), 15.0f);
    const unsigned code = static_cast<unsigned>(moved);
    const unsigned upper = __shfl_down_sync(kAll, code, 16);
    if (lane < 16) block[2 + lane] = static_cast<UInt8>(code | upper << 4);
  }
}

__device__ __forceinline__ void write_eight(UInt8* to, UInt64 bytes) {
#pragma unroll
  for (int i = 0; i < 8; ++i) to[i] = static_cast<UInt8>(bytes >> (8 * i));
}

/// Eight values of a lane, groups of 32: from the lowest value, or 0, to the highest.
template <typename Format>
__device__ __forceinline__ void quantize_with_minimum(UInt8* block, const float* value,
                                                      unsigned lane) {
  constexpr bool kFifth = Format::kMost == 31;
  float low = 0, high = value[0];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    low = fminf(low, value[i]);
    high = fmaxf(high, value[i]);
  }
#pragma unroll
  for (int distance = 1; distance < 4; distance *= 2) {
    low = fminf(low, __shfl_xor_sync(kAll, low, distance));
    high = fmaxf(high, __shfl_xor_sync(kAll, high, distance));
  }
  const float range = __fdiv_rn(__fsub_rn(high, low), static_cast<float>(Format::kMost));
  float most = range, depth = -low;
#pragma unroll
  for (int distance = 4; distance < 32; distance *= 2) {
    most = fmaxf(most, __shfl_xor_sync(kAll, most, distance));
    depth = fmaxf(depth, __shfl_xor_sync(kAll, depth, distance));
  }
  const Float16 d = from_compute<Float16>(__fdiv_rn(most, 63.0f));
  const Float16 dmin = from_compute<Float16>(__fdiv_rn(depth, 63.0f));
  const float step = to_compute(d), floor = to_compute(dmin);
  const int scale = step > 0 ? nearest(__fdiv_rn(range, step), 0, 63) : 0;
  const int minimum = floor > 0 ? nearest(__fdiv_rn(-low, floor), 0, 63) : 0;
  if (lane == 0) {
    write_half(block, d);
    write_half(block + 2, dmin);
  }
  // Twelve bytes: of groups 0 to 3 the six bits, above them the two high bits of groups 4 to 7.
  const int scale_above = __shfl_down_sync(kAll, scale, 16);
  const int minimum_above = __shfl_down_sync(kAll, minimum, 16);
  if (lane % 4 == 0 && lane < 16) {
    const unsigned group = lane / 4;
    block[4 + group] = static_cast<UInt8>(scale | (scale_above >> 4) << 6);
    block[8 + group] = static_cast<UInt8>(minimum | (minimum_above >> 4) << 6);
    block[12 + group] = static_cast<UInt8>((scale_above & 15) | (minimum_above & 15) << 4);
  }
  const float unit = step * static_cast<float>(scale), shift = floor * static_cast<float>(minimum);
  UInt64 codes = 0, fifth = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float moved = __fadd_rn(value[i], shift);
    const int code = unit > 0 ? nearest(__fdiv_rn(moved, unit), 0, Format::kMost) : 0;
    codes |= static_cast<UInt64>(code & 15) << (8 * i);
    fifth |= static_cast<UInt64>(code >> 4) << (8 * i + lane / 4);
  }
  codes |= __shfl_down_sync(kAll, codes, 4) << 4;
  if (lane % 8 < 4) write_eight(block + Format::kCodes + lane / 8 * 32 + lane % 4 * 8, codes);
  if (kFifth) {
#pragma unroll
    for (int distance = 4; distance < 32; distance *= 2) {
      fifth |= __shfl_xor_sync(kAll, fifth, distance);
    }
    if (lane < 4) write_eight(block + 16 + lane * 8, fifth);
  }
}

/// Eight values of a lane, groups of 16: the value of largest magnitude becomes -32.
__device__ __forceinline__ void quantize_signed(UInt8* block, const float* value, unsigned lane) {
  float most = value[0];
#pragma unroll
  for (int i = 1; i < 8; ++i) most = fabsf(value[i]) > fabsf(most) ? value[i] : most;
  const float range = __fdiv_rn(largest_signed<2>(most), -32.0f);
  const Float16 d = from_compute<Float16>(__fdiv_rn(largest_signed<32>(range), -128.0f));
  const float step = to_compute(d);
  const int scale = step != 0 ? nearest(__fdiv_rn(range, step), -128, 127) : 0;
  if (lane == 0) write_half(block + 208, d);
  if (lane % 2 == 0) block[192 + lane / 2] = static_cast<UInt8>(scale);
  const float unit = step * static_cast<float>(scale);
  UInt64 low = 0, high = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int code = unit != 0 ? nearest(__fdiv_rn(value[i], unit), -32, 31) + 32 : 32;
    low |= static_cast<UInt64>(code & 15) << (8 * i);
    high |= static_cast<UInt64>(code >> 4) << (8 * i + 2 * (lane / 4 % 4));
  }
  low |= __shfl_down_sync(kAll, low, 8) << 4;
  high |= __shfl_xor_sync(kAll, high, 4);
  high |= __shfl_xor_sync(kAll, high, 8);
  const unsigned half = lane / 16, quarter = lane / 4 % 4, place = lane % 4 * 8;
  if (quarter < 2) write_eight(block + half * 64 + quarter * 32 + place, low);
  if (quarter == 0) write_eight(block + 128 + half * 32 + place, high);
}

template <typename Format, typename T>
__global__ void __launch_bounds__(kThreads)
    quantize_blocks(UInt8* out, const T* in, UInt64 blocks) {
  const unsigned lane = threadIdx.x % 32;
  constexpr int kWarps = kThreads / 32;
  for (UInt64 at = static_cast<UInt64>(blockIdx.x) * kWarps + threadIdx.x / 32; at < blocks;
       at += static_cast<UInt64>(gridDim.x) * kWarps) {
    UInt8* const block = out + at * Format::kBytes;
    if constexpr (Format::kValues == 32) {
      quantize_32<Format::kBytes == 34>(block, to_compute(in[at * 32 + lane]), lane);
    } else {
      float value[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float number = to_compute(in[at * 256 + lane * 8 + i]);
        value[i] = number == number ? number : 0.0f;
      }
      if constexpr (Format::kBytes == 210) {
        quantize_signed(block, value, lane);
      } else {
        quantize_with_minimum<Format>(block, value, lane);
      }
    }
  }
}
