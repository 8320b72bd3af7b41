// Codes of packed weights in the order of k of a wgmma operand. A lane of four needs one pair of
// each eight of k, but has all of every fourth eight. The lane reads the codes of all four lanes,
// or of two where runs are of four, and takes a pair of each.
#pragma once

#include <kernwright/packed_weights.cuh>

namespace kernwright {

__device__ __forceinline__ unsigned turned(unsigned word, unsigned right) {
  return __funnelshift_r(word, word, right);
}

/// Where the pairs of codes of four bits are: `kApart` bits between the pairs of a lane; the first
/// pair is rotated to bit `kFirst`.
template <typename Codes>
struct PairPlaces;
template <typename T, int Bits>
struct PairPlaces<WholeCodes<T, Bits>> {
  using Whole = WholeCodes<T, Bits>;
  static constexpr int kApart = 4, kFirst = Whole::kPlace, kHigh = Whole::kHigh;
  template <bool kPlain>
  __device__ __forceinline__ static unsigned pair(unsigned word, unsigned mask, const PairTable&) {
    return merged(word, mask, kPlain ? 0 : Whole::kExponent * 0x00010001u);
  }
};
template <typename T>
struct PairPlaces<Float4Codes<T>> {
  static constexpr int kApart = 4, kFirst = 12, kHigh = 0;
  template <bool>
  __device__ __forceinline__ static unsigned pair(unsigned word, unsigned, const PairTable&) {
    return Float4Codes<T>::moved(word);
  }
};
template <typename T, typename Table>
struct PairPlaces<TableCodes<T, Table>> {
  static constexpr int kApart = 8, kFirst = 7, kHigh = 0;
  template <bool>
  __device__ __forceinline__ static unsigned pair(unsigned word, unsigned, const PairTable& table) {
    return table.at(word & 0x7f80u);
  }
};

/// Like the codes that it reads.
template <typename Codes, int Run>
struct SpreadCodes : Codes {
  using Places = PairPlaces<Codes>;
  static constexpr unsigned kLanes = Run == 8 ? 4 : 2;
  static constexpr int kHigh = Places::kHigh;  // upper bits of a code, and words of a lane
  struct Raw {
    Words low[kLanes];
    unsigned high[kLanes][kHigh < 1 ? 1 : kHigh];
    unsigned pair;  ///< the lane's of an eight
  };
  template <bool Copied>
  __device__ __forceinline__ static Raw load(const PackedArrays& from, const PackedPlace& place,
                                             unsigned lane) {
    Raw raw;
    raw.pair = Run == 8 ? lane % 4 : lane % 2;
#pragma unroll
    for (unsigned i = 0; i < kLanes; ++i) {
      const unsigned source = lane / 4 * 4 + (Run == 8 ? i : i * 2 + lane % 4 / 2);
      const UInt64 at = packed_lane(place, source);
      raw.low[i] = read_codes<Copied>(from.codes + at * 16);
      if constexpr (kHigh > 0) {
        const auto upper =
            *reinterpret_cast<const Pack<UInt32, kHigh>*>(from.high + at * 4 * kHigh);
#pragma unroll
        for (int j = 0; j < kHigh; ++j) raw.high[i][j] = upper.value[j];
      }
    }
    return raw;
  }
  __device__ __forceinline__ static void change(Raw& raw, int, unsigned bits) { raw.pair ^= bits; }
  /// The pairs of the four eights of a part. `mask` and `kPlain` as for whole codes.
  template <bool kPlain>
  __device__ __forceinline__ static void decode(const Raw& raw, int part, const PairTable& table,
                                                unsigned mask, unsigned (&pairs)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int which = i % static_cast<int>(kLanes), more = i / static_cast<int>(kLanes) * 2;
      const unsigned low = raw.pair * Places::kApart + (more * Places::kApart - Places::kFirst);
      pairs[i] = Places::template pair<kPlain>(turned(raw.low[which].word[part], low), mask, table);
      if constexpr (kHigh > 0) {
        const int first = (kHigh == 2 ? part % 2 : part) * 4 + more;
        const unsigned high = raw.pair * kHigh + (first * kHigh - Places::kFirst - 4);
        pairs[i] = merged(turned(raw.high[which][kHigh == 2 ? part / 2 : 0], high),
                          ((1u << kHigh) - 1) * 0x00010001u << (Places::kFirst + 4), pairs[i]);
      }
    }
  }
};

template <typename T, int Bits, int Run>
struct CodeMask<SpreadCodes<WholeCodes<T, Bits>, Run>> {
  static constexpr unsigned kValue = WholeCodes<T, Bits>::kMask;
};

template <typename Codes>
struct IsSpread {
  static constexpr bool kValue = false;
};
template <typename Codes, int Run>
struct IsSpread<SpreadCodes<Codes, Run>> {
  static constexpr bool kValue = true;
};

/// Formats as their kernels read them.
template <typename Format>
struct SpreadFormat;
template <typename Codes, typename Scales, int Run>
struct SpreadFormat<Packed<Codes, Scales, Run>> {
  using Type = Packed<SpreadCodes<Codes, Run>, Scales, Run>;
};
template <typename Format>
struct Itself {
  using Type = Format;
};

}  // namespace kernwright
