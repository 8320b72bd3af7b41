// Tiles of keys and values of 8 bits: the elements become float16 in registers, between shared
// memory and the mma instructions.
#pragma once

#include <kernwright/attention_tile.cuh>

namespace kernwright {

/// A word of four elements as two pairs of float16, exactly: {0, 1} and {2, 3}, or with kCrossed
/// {0, 2} and {1, 3}.
template <typename E>
struct BytePairs;
template <>
struct BytePairs<Int8> {
  template <bool kCrossed>
  __device__ static __forceinline__ void apply(unsigned (&pairs)[2], unsigned word) {
    // 0x6400 with a byte in the low bits is 1024 plus that byte.
    const unsigned raised = word ^ 0x80808080u;
    pairs[0] = lowered(__byte_perm(raised, 0x64646464u, kCrossed ? 0x4240 : 0x4140));
    pairs[1] = lowered(__byte_perm(raised, 0x64646464u, kCrossed ? 0x4341 : 0x4342));
  }
  __device__ static __forceinline__ unsigned lowered(unsigned pair) {
    asm("sub.rn.f16x2 %0, %0, %1;" : "+r"(pair) : "r"(0x64806480u));  // 1024 + 128
    return pair;
  }
};
template <>
struct BytePairs<Float8E5M2> {
  template <bool kCrossed>
  __device__ static __forceinline__ void apply(unsigned (&pairs)[2], unsigned word) {
    pairs[0] = __byte_perm(word, 0, kCrossed ? 0x2404 : 0x1404);  // the upper half of a float16
    pairs[1] = __byte_perm(word, 0, kCrossed ? 0x3414 : 0x3424);
  }
};
template <>
struct BytePairs<Float8E4M3> {
  template <bool kCrossed>
  __device__ static __forceinline__ void apply(unsigned (&pairs)[2], unsigned word) {
    if (kCrossed) word = __byte_perm(word, 0, 0x3120);
    pairs[0] = widened(word & 0xffffu);
    pairs[1] = widened(word >> 16);
  }
  __device__ static __forceinline__ unsigned widened(unsigned two) {
#if __CUDA_ARCH__ >= 890
    unsigned pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<unsigned short>(two)));
    return pair;
#else
    const Float8E4M3 low{static_cast<unsigned char>(two)},
        high{static_cast<unsigned char>(two >> 8)};
    return MatrixUnit<Float16>::pair(to_float(low), to_float(high));
#endif
  }
};

/// Four 8 by 16 parts of a tile of bytes as matrices of pairs: tokens first..+7 and +8..+15 of the
/// 16 columns from 32 * step, then of the next 16.
template <int kDim, bool kTransposed>
__device__ __forceinline__ void load_words(unsigned (&to)[4], unsigned tile, int first, int step) {
  const int lane = threadIdx.x % 32;
  const int place = chunk_place<kDim / 16>(first + lane % 16, 2 * step + lane / 16);
  if constexpr (kTransposed) {
    load_transposed(to, tile + 16 * place);
  } else {
    load_matrices(to, tile + 16 * place);
  }
}

/// Stores eight queries, the first or second half of 16 columns. A lane's words hold the columns of
/// keys in another order than fragments of 16-bit elements, so the queries are stored in the order
/// of the keys: 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15.
template <int kDim>
__device__ __forceinline__ void store_query_words(unsigned char* tile, int row, int pack,
                                                  const unsigned (&pairs)[4]) {
  const int within = pack % 2 * 8;
  unsigned char* const first = tile + 16 * swizzled<kDim / 8>(row, pack / 2 * 2) + within;
  unsigned char* const second = tile + 16 * swizzled<kDim / 8>(row, pack / 2 * 2 + 1) + within;
  *reinterpret_cast<uint2*>(first) = make_uint2(pairs[0], pairs[2]);
  *reinterpret_cast<uint2*>(second) = make_uint2(pairs[1], pairs[3]);
}

/// s += products of queries, in the order above, and the tokens of a tile. `queries.get(left,
/// step)` gives columns 16 * step..+15.
template <typename E, int kDim, int kTiles, typename Queries>
__device__ __forceinline__ void multiply_key_bytes(float (&s)[kTiles][4], const Queries& queries,
                                                   unsigned keys) {
#pragma unroll
  for (int step = 0; step < kDim / 32; ++step) {
    unsigned left[2][4];
    queries.get(left[0], 2 * step);
    queries.get(left[1], 2 * step + 1);
#pragma unroll
    for (int tokens = 0; tokens < kTiles / 2; ++tokens) {
      unsigned words[4];
      load_words<kDim, false>(words, keys, 16 * tokens, step);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        unsigned pairs[2];
        BytePairs<E>::template apply<false>(pairs, words[i]);
        MatrixUnit<Float16>::multiply(s[2 * tokens + i % 2], left[i / 2], pairs[0], pairs[1]);
      }
    }
  }
}

/// out += weights * values, as add_values(). Columns 16 * i + 4 * (lane % 4) + {0, 2} of the result
/// are in out[2 * i], {1, 3} in out[2 * i + 1].
template <typename E, int kValueDim, int kTiles>
__device__ __forceinline__ void add_value_bytes(RunningRows<kValueDim>& running,
                                                const float (&weights)[kTiles][4],
                                                unsigned values) {
  using Unit = MatrixUnit<Float16>;
#pragma unroll
  for (int tokens = 0; tokens < kTiles / 2; ++tokens) {
    unsigned left[4];
    pair_weights<Float16>(left, weights[2 * tokens], weights[2 * tokens + 1]);
#pragma unroll
    for (int step = 0; step < kValueDim / 32; ++step) {
      unsigned words[4];
      load_words<kValueDim, true>(words, values, 16 * tokens, step);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        unsigned early[2], late[2];  // tokens 0..7 and 8..15
        BytePairs<E>::template apply<true>(early, words[2 * i]);
        BytePairs<E>::template apply<true>(late, words[2 * i + 1]);
        Unit::multiply(running.out[4 * step + 2 * i], left, early[0], late[0]);
        Unit::multiply(running.out[4 * step + 2 * i + 1], left, early[1], late[1]);
      }
    }
  }
}

}  // namespace kernwright
