// The values of weight codes, in formats and in packed weights.
#pragma once

#include <kernwright/elements.cuh>

namespace kernwright {

/// The numbers of NF4 by code (T. Dettmers et al., QLoRA, 2023).
__device__ const float kNormalFloat[16] = {-1.0f,
                                           -0.6961928009986877f,
                                           -0.5250730514526367f,
                                           -0.39491748809814453f,
                                           -0.28444138169288635f,
                                           -0.18477343022823334f,
                                           -0.09105003625154495f,
                                           0.0f,
                                           0.07958029955625534f,
                                           0.16093020141124725f,
                                           0.24611230194568634f,
                                           0.33791524171829224f,
                                           0.44070982933044434f,
                                           0.5626170039176941f,
                                           0.7229568362236023f,
                                           1.0f};

/// The numbers of FP4 by code, as bitsandbytes has them: twelfths of 0, 1/16, 8, 12, 4, 6, 2, 3.
__device__ const float kTwelfthFloat[16] = {
    0.0f,  0.0052083333f,  0.6666667f,  1.0f,  0.33333334f,  0.5f,  0.16666667f,  0.25f,
    -0.0f, -0.0052083333f, -0.6666667f, -1.0f, -0.33333334f, -0.5f, -0.16666667f, -0.25f};

/// The numbers of IQ4_NL and IQ4_XS by code.
__device__ const float kUnevenNumbers[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                             1,    13,   25,  38,  53,  69,  89,  113};

/// 2 to the power of (byte - 127), as MX formats have scales; 255 is NaN.
__device__ __forceinline__ float byte_power(unsigned byte) {
  return __uint_as_float(byte << 23 | (byte - 1 >= 254 ? 0x00400000u : 0));
}

}  // namespace kernwright
