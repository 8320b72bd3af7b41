// Codes of four bits that stand for the 16 numbers of a table, of packed weights.
#pragma once

#include <kernwright/packed_codes.cuh>
#include <kernwright/weight_codes.cuh>

namespace kernwright {

/// For four codes: the lower three bits choose in both halves of a table, the fourth bit chooses
/// the half.
template <unsigned A, unsigned B, unsigned C, unsigned D>
__device__ __forceinline__ unsigned chosen_bytes(unsigned codes, unsigned halves) {
  return __byte_perm(__byte_perm(A, B, codes), __byte_perm(C, D, codes), halves);
}

// A table's number() is exact. high() and low() give the upper and the lower bytes of the numbers
// of four codes, rounded to the type of the first argument.

/// NF4.
struct NormalTable {
  __device__ static float number(unsigned code) { return kNormalFloat[code]; }
  __device__ __forceinline__ static unsigned high(BFloat16, unsigned codes, unsigned halves) {
    return chosen_bytes<0xbebfbfbfu, 0x00bdbebeu, 0x3e3e3e3du, 0x3f3f3f3eu>(codes, halves);
  }
  __device__ __forceinline__ static unsigned low(BFloat16, unsigned codes, unsigned halves) {
    return chosen_bytes<0xca063280u, 0x00ba3d92u, 0xad7c25a3u, 0x803910e2u>(codes, halves);
  }
  __device__ __forceinline__ static unsigned high(Float16, unsigned codes, unsigned halves) {
    return chosen_bytes<0xb6b8b9bcu, 0x00adb1b4u, 0x3533312du, 0x3c393837u>(codes, halves);
  }
  __device__ __forceinline__ static unsigned low(Float16, unsigned codes, unsigned halves) {
    return chosen_bytes<0x52339200u, 0x00d4ea8du, 0x68e02618u, 0x00c9800du>(codes, halves);
  }
};
/// FP4 of bitsandbytes.
struct TwelfthTable {
  __device__ static float number(unsigned code) { return kTwelfthFloat[code]; }
  __device__ __forceinline__ static unsigned high(BFloat16, unsigned codes, unsigned halves) {
    return chosen_bytes<0x3f3f3b00u, 0x3e3e3f3eu, 0xbfbfbb80u, 0xbebebfbeu>(codes, halves);
  }
  __device__ __forceinline__ static unsigned low(BFloat16, unsigned codes, unsigned halves) {
    return chosen_bytes<0x802bab00u, 0x802b00abu, 0x802bab00u, 0x802b00abu>(codes, halves);
  }
  __device__ __forceinline__ static unsigned high(Float16, unsigned codes, unsigned halves) {
    return chosen_bytes<0x3c391d00u, 0x34313835u, 0xbcb99d80u, 0xb4b1b8b5u>(codes, halves);
  }
  __device__ __forceinline__ static unsigned low(Float16, unsigned codes, unsigned halves) {
    return chosen_bytes<0x00555500u, 0x00550055u, 0x00555500u, 0x00550055u>(codes, halves);
  }
};
/// IQ4_NL and IQ4_XS. Both types hold the numbers.
struct UnevenTable {
  __device__ static float number(unsigned code) { return kUnevenNumbers[code]; }
  __device__ __forceinline__ static unsigned high(BFloat16, unsigned codes, unsigned halves) {
    return chosen_bytes<0xc2c2c2c2u, 0xc1c1c2c2u, 0x4241413fu, 0x42424242u>(codes, halves);
  }
  __device__ __forceinline__ static unsigned low(BFloat16, unsigned codes, unsigned halves) {
    return chosen_bytes<0x82a6d0feu, 0x20b00c44u, 0x18c85080u, 0xe2b28a54u>(codes, halves);
  }
  __device__ __forceinline__ static unsigned high(Float16, unsigned codes, unsigned halves) {
    return chosen_bytes<0xd4d5d6d7u, 0xc9cdd0d2u, 0x504e4a3cu, 0x57555452u>(codes, halves);
  }
  __device__ __forceinline__ static unsigned low(Float16, unsigned codes, unsigned halves) {
    return chosen_bytes<0x103080f0u, 0x00806020u, 0xc0408000u, 0x109050a0u>(codes, halves);
  }
};

/// Values in their order in a word: bytes are chosen from registers.
template <typename T, typename TableType>
struct TableCodes : FourBits {
  static constexpr int kBase = 0;
  using Raw = FourBits;
  using Table = TableType;
  using Pair = T;
  __device__ __forceinline__ static void decode(const Raw& raw, int part, unsigned (&pairs)[4]) {
    const unsigned word = raw.low.word[part], codes = word & 0x77777777u;
    const unsigned halves = (word >> 1 & 0x44444444u) | 0x32103210u;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const unsigned high = Table::high(T(), codes >> (16 * i), halves >> (16 * i));
      const unsigned low = Table::low(T(), codes >> (16 * i), halves >> (16 * i));
      pairs[2 * i] = __byte_perm(low, high, 0x5140);
      pairs[2 * i + 1] = __byte_perm(low, high, 0x7362);
    }
  }
};

/// A table in shared memory of pairs of codes: each lane has a separate copy, so that no two lanes
/// have a bank conflict.
struct PairTable {
  static constexpr unsigned kBytes = 256 * 32 * 4;
  const unsigned char* lane_table;

  /// By all threads of a block, which must meet before the table is read.
  template <typename Codes>
  __device__ __forceinline__ static void fill(unsigned char* table) {
    using T = typename Codes::Pair;
    for (unsigned i = threadIdx.x; i < kBytes / 16; i += blockDim.x) {
      const unsigned codes = i / 8, halves = (codes >> 1 & 0x44u) | 0x3210u;
      const unsigned high = Codes::Table::high(T(), codes & 0x77u, halves);
      const unsigned low = Codes::Table::low(T(), codes & 0x77u, halves);
      const unsigned pair = __byte_perm(low, high, 0x5140);
      reinterpret_cast<Words*>(table)[i] = {pair, pair, pair, pair};
    }
  }
  __device__ __forceinline__ unsigned at(unsigned place) const {
    return *reinterpret_cast<const unsigned*>(lane_table + place);
  }
  __device__ __forceinline__ void decode(unsigned word, unsigned (&pairs)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = at(shifted(word, 7 - 8 * i) & 0x7f80u);
  }
};
template <typename Codes>
struct TakesPairTable {
  static constexpr bool kValue = false;
};
template <typename T, typename Table>
struct TakesPairTable<TableCodes<T, Table>> {
  static constexpr bool kValue = true;
};

}  // namespace kernwright
