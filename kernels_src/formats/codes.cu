// 4-bit codes of blocks with a scale each: NF4, FP4, MXFP4, NVFP4.
#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>
#include <kernwright/weight_codes.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// Above the i-th, the code is larger than i.
__device__ const float kNormalFloatBetween[15] = {
    -0.8480964004993439f,  -0.6106329262256622f,  -0.4599952697753906f,   -0.33967943489551544f,
    -0.23460740596055984f, -0.13791173323988914f, -0.045525018125772476f, 0.03979014977812767f,
    0.1202552504837513f,   0.2035212516784668f,   0.2920137718319893f,    0.3893125355243683f,
    0.5016634166240692f,   0.6427869200706482f,   0.8614784181118011f};

/// The unit of a block's numbers, in each way of keeping it.
struct PlainScale {
  const float* scales;
  __device__ float scale_at(UInt64 block) const { return scales[block]; }
};
/// A byte that stands for a number of a table, times the scale of 256 of them, plus an offset.
struct NestedScale {
  const UInt8* codes;
  const float* table;
  const float* scales;
  const float* offset;
  __device__ float scale_at(UInt64 block) const {
    return __fadd_rn(__fmul_rn(table[codes[block]], scales[block / 256]), *offset);
  }
};
/// 2 to the power of (byte - 127); 255 is NaN.
struct PowerScale {
  const UInt8* exponents;
  __device__ float scale_at(UInt64 block) const { return byte_power(exponents[block]); }
};
/// A float8_e4m3fn times one number for all.
struct Float8Scale {
  const Float8E4M3* scales;
  const float* factor;
  __device__ float scale_at(UInt64 block) const {
    return __fmul_rn(to_compute(scales[block]), *factor);
  }
};

struct NormalFloat {
  __device__ static float decode(unsigned code) { return kNormalFloat[code]; }
  __device__ static unsigned encode(float x) {
    unsigned code = 0;
#pragma unroll
    for (int i = 0; i < 15; ++i) code += x > kNormalFloatBetween[i];
    return code;
  }
};

/// FP4 of bitsandbytes: a sign and a number from 0 to 1.
struct TwelfthFloat {
  __device__ static float decode(unsigned code) { return kTwelfthFloat[code]; }
  /// The thresholds equal the ones of bitsandbytes, digit by digit. NaN becomes 0.
  __device__ static unsigned encode(float x) {
    const float a = fabsf(x);
    const int rank = (a > 0.00260417f) + (a > 0.0859375f) + (a > 0.20833333f) + (a > 0.29166667f) +
                     (a > 0.4166667f) + (a > 0.583333f) + (a > 0.8333333f);
    constexpr unsigned kCodes = 0x32547610u;  // by rank
    return (kCodes >> (4 * rank) & 7) | (x < 0 ? 8u : 0u);
  }
};

/// float4_e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign.
struct Float4 {
  __device__ static float decode(unsigned code) {
    const unsigned magnitude = code & 7;
    const float value = magnitude < 2 ? 0.5f * static_cast<float>(magnitude)
                                      : __uint_as_float((magnitude + 252u) << 22);
    return code & 8 ? -value : value;
  }
  /// To nearest, ties to even, at most 6.
  __device__ static unsigned encode(float x) {
    const float a = fabsf(x);
    const unsigned code = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) +
                          (a >= 3.5f) + (a > 5.0f);
    return code | (__float_as_uint(x) >> 31) << 3;
  }
};

/// Eight numbers a thread and step, of two codes a byte; `High` says that the first code is the
/// high half of the byte. Blocks have 1 << shift numbers.
template <typename Code, typename Scale, typename T, bool High, bool Packed>
__global__ void __launch_bounds__(kThreads)
    dequantize_codes(T* out, const UInt8* in, UInt64 count, int shift, Scale scales) {
  const UInt64 step = static_cast<UInt64>(gridDim.x) * kThreads * 8;
  for (UInt64 at = (static_cast<UInt64>(blockIdx.x) * kThreads + threadIdx.x) * 8; at < count;
       at += step) {
    const float scale = scales.scale_at(at >> shift);
    unsigned codes = 0;
    if (Packed) {
      codes = *reinterpret_cast<const UInt32*>(in + at / 2);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (at + 2 * i < count) codes |= static_cast<unsigned>(in[at / 2 + i]) << (8 * i);
      }
    }
    constexpr int kWidth = 16 / sizeof(T) < 8 ? 16 / sizeof(T) : 8;
    Pack<T, kWidth> pack[8 / kWidth];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float value = Code::decode(codes >> (4 * (High ? i ^ 1 : i)) & 15);
      pack[i / kWidth].value[i % kWidth] = from_compute<T>(__fmul_rn(value, scale));
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (!Packed && at + i < count) out[at + i] = pack[i / kWidth].value[i % kWidth];
      if (Packed && i % kWidth == 0) {
        *reinterpret_cast<Pack<T, kWidth>*>(out + at + i) = pack[i / kWidth];
      }
    }
  }
}

// ---- numbers to codes. Each kind writes the scale of a block and says by what it divides.

struct ToPlainScale {
  float* scales;
  __device__ float write(UInt64 block, float most, bool writes) const {
    if (writes) scales[block] = most;
    return most;
  }
};
/// The largest power of two that is no larger than the largest magnitude, over 4.
struct ToPowerScale {
  UInt8* exponents;
  __device__ float write(UInt64 block, float most, bool writes) const {
    int exponent = 255;
    if (most < __uint_as_float(0x7f800000u)) {
      exponent = static_cast<int>(__float_as_uint(most) >> 23) - 2;
      exponent = exponent < 0 ? 0 : exponent;
    }
    if (writes) exponents[block] = static_cast<UInt8>(exponent);
    return byte_power(exponent);
  }
};
/// The largest magnitude over 6, as float8_e4m3fn times the number for all.
struct ToFloat8Scale {
  Float8E4M3* scales;
  const float* factor;
  __device__ float write(UInt64 block, float most, bool writes) const {
    float wanted = *factor == 0 ? 0.0f : __fdiv_rn(__fdiv_rn(most, 6.0f), *factor);
    if (wanted > 448.0f) wanted = 448.0f;
    const Float8E4M3 scale = from_compute<Float8E4M3>(wanted);
    if (writes) scales[block] = scale;
    return __fmul_rn(to_compute(scale), *factor);
  }
};

/// `Lanes` threads a block of 1 << shift numbers; what is beyond `count` counts as 0.
template <typename Code, typename Scale, typename T, bool High, int Lanes>
__global__ void __launch_bounds__(kThreads)
    quantize_codes(UInt8* out, const T* in, UInt64 count, int shift, Scale scales) {
  const UInt64 size = UInt64{1} << shift, blocks = (count + size - 1) >> shift;
  const unsigned lane = threadIdx.x % Lanes;
  constexpr int kBlocks = kThreads / Lanes;
  // Every thread takes part in each shuffle, with or without a block.
  for (UInt64 first = static_cast<UInt64>(blockIdx.x) * kBlocks; first < blocks;
       first += static_cast<UInt64>(gridDim.x) * kBlocks) {
    const UInt64 block = first + threadIdx.x / Lanes;
    const UInt64 begin = block << shift, end = min(begin + size, count);
    float most = 0;
    for (UInt64 at = begin + lane; at < end; at += Lanes) {
      most = Maximum()(most, fabsf(to_compute(in[at])));
    }
#pragma unroll
    for (int distance = Lanes / 2; distance > 0; distance /= 2) {
      most = Maximum()(most, __shfl_xor_sync(0xffffffffu, most, distance));
    }
    if (begin >= end) continue;
    const float divisor = scales.write(block, most, lane == 0);
    for (UInt64 at = begin + 2 * lane; at < end; at += 2 * Lanes) {
      unsigned code[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float x = at + i < end ? to_compute(in[at + i]) : 0.0f;
        code[i] = Code::encode(divisor == 0 ? 0.0f : __fdiv_rn(x, divisor));
      }
      out[at / 2] = static_cast<UInt8>(High ? code[0] << 4 | code[1] : code[1] << 4 | code[0]);
    }
  }
}
