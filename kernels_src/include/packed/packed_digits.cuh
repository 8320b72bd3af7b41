// Products of one row with quantised weights as products of whole numbers: what x is then, and what
// a lane has of a unit of two blocks, 256 of k.
#pragma once

#include <kernwright/packed_lanes.cuh>

namespace kernwright {

// The numbers of x of a group are whole numbers times a power of two, which the largest of them
// decides: 22 bits and a sign. So accumulators of codes times x are exact, in 32 bits. The eight
// columns of a fragment are four digits of eight bits of x, the uppermost first, for a group of the
// unit's first block, and four digits for a group of the second block.

/// c += a * b for 16 rows of a and 8 columns of b, 32 deep; a of unsigned bytes, b of signed ones.
__device__ __forceinline__ void multiply_bytes(int (&c)[4], unsigned a0, unsigned a1, unsigned a2,
                                               unsigned a3, uint2 b) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b.x), "r"(b.y));
}
/// Multiplies bytes, 16 deep.
__device__ __forceinline__ void multiply_bytes(int (&c)[4], unsigned a0, unsigned a1, unsigned b) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a0), "r"(a1), "r"(b));
}

/// What a lane has of a row's part: codes of four bits, and the word with their upper bits, of
/// which the first are of pair `pair`.
struct RowWords {
  unsigned low, high;
  int pair;
};

/// Codes as bytes. words() gives the words of a part. order(i): which of the eight values of a part
/// byte i is. Bytes are the values times kTimes, plus kZero; the later four bytes are 2^kUpper
/// times as large again.
template <typename Codes, int Group>
struct CodeBytes;
template <typename T, int Group>
struct CodeBytes<WholeCodes<T, 4>, Group> {
  static constexpr int kTimes = 1, kUpper = 4, kZero = 0;
  using Raw = typename WholeCodes<T, 4>::Raw;
  __device__ static constexpr int order(int i) { return i % 2 * 4 + i / 2 % 2 + i / 4 * 2; }
  __device__ __forceinline__ explicit CodeBytes(unsigned) {}
  __device__ __forceinline__ static RowWords words(const Raw& raw, int part) {
    return {raw.low.word[part], 0, 0};
  }
  __device__ __forceinline__ void multiply(int (&c)[4], const RowWords& upper,
                                           const RowWords& lower, uint2 b) const {
    constexpr unsigned kLow = 0x0f0f0f0fu;
    multiply_bytes(c, upper.low & kLow, lower.low & kLow, upper.low & ~kLow, lower.low & ~kLow, b);
  }
};
/// Codes of five or six bits: lanes have their upper bits apart, of pairs of a byte's place.
template <typename T, int Bits, int Group>
struct CodeBytes<WholeCodes<T, Bits>, Group> {
  static constexpr int kTimes = 1, kUpper = 0, kZero = 0, kHigh = Bits - 4;
  using Raw = typename WholeCodes<T, Bits>::Raw;
  __device__ static constexpr int order(int i) {
    return Group == 16 ? i : i % 2 * 4 + i / 2 % 2 + i / 4 * 2;
  }
  __device__ __forceinline__ explicit CodeBytes(unsigned) {}
  __device__ __forceinline__ static RowWords words(const Raw& raw, int part) {
    if constexpr (kHigh == 1) return {raw.low.word[part], raw.high[0], part * 4};
    return {raw.low.word[part], raw.high[part / 2 % kHigh], part % 2 * 4};
  }
  /// The upper bits of every second pair from `pair` on, at the tops of four bytes. Products bring
  /// them to two places, of which one is theirs.
  __device__ __forceinline__ static unsigned four(unsigned codes, unsigned high, int pair) {
    constexpr unsigned kBits = kHigh == 1 ? 0x00050005u : 0x00330033u;
    constexpr unsigned kMoves = kHigh == 1 ? 0x410u : 0x110u;
    return merged((high >> (kHigh * pair) & kBits) * kMoves,
                  (kHigh == 1 ? 0x10101010u : 0x30303030u), codes & 0x0f0f0f0fu);
  }
  __device__ __forceinline__ static unsigned first(const RowWords& row) {
    return four(row.low, row.high, row.pair);
  }
  __device__ __forceinline__ static unsigned second(const RowWords& row) {
    return four(row.low >> 4, row.high, row.pair + 1);
  }
  __device__ __forceinline__ void multiply(int (&c)[4], const RowWords& upper,
                                           const RowWords& lower, uint2 b) const {
    multiply_bytes(c, first(upper), first(lower), second(upper), second(lower), b);
  }
  /// Half of them.
  __device__ __forceinline__ void multiply(int (&c)[4], const RowWords& upper,
                                           const RowWords& lower, int half, unsigned b) const {
    const auto bytes = [&](const RowWords& row) {
      return __byte_perm(first(row), second(row), half == 0 ? 0x6420 : 0x7531);
    };
    multiply_bytes(c, bytes(upper), bytes(lower), b);
  }
};

/// Codes of two or three bits, in groups of 16.
template <typename T, int Bits>
struct CodeBytes<FewCodes<T, Bits>, 16> {
  static constexpr int kTimes = 1, kUpper = 0, kZero = 0;
  struct Part {
    typename FewCodes<T, Bits>::Raw raw;
    int part;
    /// Four of a group's eight bytes.
    __device__ __forceinline__ unsigned bytes(int half) const {
      const unsigned low = raw.low.value[half] >> (2 * part) & 0x03030303u;
      if constexpr (Bits == 2) return low;
      return merged(shifted(raw.high, 2 - (half * 4 + part)), 0x04040404u, low);
    }
  };
  __device__ static constexpr int order(int i) { return i / 4 * 4 + i % 2 * 2 + i / 2 % 2; }
  __device__ __forceinline__ explicit CodeBytes(unsigned) {}
  __device__ __forceinline__ static Part words(const typename FewCodes<T, Bits>::Raw& raw,
                                               int part) {
    return {raw, part};
  }
  /// Half of them.
  __device__ __forceinline__ void multiply(int (&c)[4], const Part& upper, const Part& lower,
                                           int half, unsigned b) const {
    multiply_bytes(c, upper.bytes(half), lower.bytes(half), b);
  }
};

/// Selects among eight bytes by four bits each: the position, and whether the result is the byte
/// or, eight times, the sign of the byte. (__byte_perm() takes the position alone.)
__device__ __forceinline__ unsigned chosen_or_signs(const unsigned (&bytes)[2], unsigned by) {
  unsigned chosen;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(chosen) : "r"(bytes[0]), "r"(bytes[1]), "r"(by));
  return chosen;
}
/// float4_e2m1. The signs of both tables' bytes are 0. So positive codes are chosen from the first
/// table, and negative ones from the second.
template <typename T, int Group>
struct CodeBytes<Float4Codes<T>, Group> {
  static constexpr int kTimes = 2, kUpper = 0, kZero = 12;
  using Raw = FourBits;
  __device__ __forceinline__ static RowWords words(const Raw& raw, int part) {
    return {raw.low.word[part], 0, 0};
  }
  __device__ static constexpr int order(int i) {
    return Group == 16 ? i / 4 * 4 + i % 2 * 2 + i / 2 % 2 : i % 4 * 2 + i / 4;
  }
  unsigned positive[2], negative[2];
  /// `zero` is unknown to the compiler, which would move constants to registers before each use.
  __device__ __forceinline__ explicit CodeBytes(unsigned zero)
      : positive{0x0f0e0d0cu ^ zero, 0x18141210u ^ zero},
        negative{0x090a0b0cu ^ zero, 0x00040608u ^ zero} {}
  /// Four codes of a word.
  __device__ __forceinline__ unsigned four(unsigned word, int half) const {
    unsigned codes = half == 0 ? word : word >> 16;
    if (Group == 16) codes = __byte_perm(word, 0, half == 0 ? 0x4420 : 0x4431);
    return chosen_or_signs(positive, codes) | chosen_or_signs(negative, codes ^ 0x8888u);
  }
  __device__ __forceinline__ void multiply(int (&c)[4], const RowWords& upper,
                                           const RowWords& lower, uint2 b) const {
    multiply_bytes(c, four(upper.low, 0), four(lower.low, 0), four(upper.low, 1),
                   four(lower.low, 1), b);
  }
  /// Half of the word.
  __device__ __forceinline__ void multiply(int (&c)[4], const RowWords& upper,
                                           const RowWords& lower, int half, unsigned b) const {
    multiply_bytes(c, four(upper.low, half), four(lower.low, half), b);
  }
};

/// A group's factor of the accumulators of digits, and the sum of x for zeros.
struct DigitScale {
  float unit, sum;
};

/// The digits of x in shared memory.
template <typename T, typename Format>
struct XDigits {
  using Bytes = CodeBytes<typename Format::Codes, Format::kGroup>;
  using Column = LaneColumn<T, Format>;
  static constexpr int kGroup = Format::kGroup, kSets = 128 / kGroup;  ///< groups of a block
  static constexpr int kParts = kGroup == 16 ? 2 : 1;                  ///< groups of a lane's eight
  static constexpr bool kSums = Format::Scales::kOffset || Bytes::kZero != 0;
  /// Bytes of 32 of k: 128, and a gap, so that lanes of more parts write to other banks.
  static constexpr unsigned kPart = 160;
  static constexpr unsigned kZeros = 4 * kPart;  ///< bytes in front of the first unit
  static constexpr unsigned kDigits = 8 * kPart, kBytes = kDigits + kSets * 32;  ///< of a unit
  /// The bits of 1.5 * 2^23: whole numbers of 22 bits can be added, and floats are the result.
  static constexpr unsigned kWhole = 0x4b400000u;

  /// All threads of a block call it, and meet before the products.
  __device__ __forceinline__ static void clear(unsigned char* zeros) {
    for (unsigned i = threadIdx.x; i < kZeros / 4; i += blockDim.x)
      reinterpret_cast<unsigned*>(zeros)[i] = 0;
  }

  /// A lane's eight numbers of a unit, which lie in one part.
  __device__ __forceinline__ static void spread(const Column& column, float (&x)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      x[i] = to_compute(T{static_cast<UInt16>(column.x[i / 2] >> i % 2 * 16)});
  }

  /// By a warp, for a unit: of the lanes' numbers.
  __device__ __forceinline__ static void make(const float (&x)[8], unsigned lane,
                                              unsigned char* to) {
    unsigned digits[8];
#pragma unroll
    for (int i = 0; i < kParts; ++i) make_group(x, i, lane, digits, to);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const bool upper = i / 2 % 2 == 1;  // the later four of whole codes
      // Signed digits: each is 128 less than that of a number with 128 more at all places.
      digits[i] = ((digits[i] << (upper ? 8 - Bytes::kUpper : 8)) + 0x80808080u) ^ 0x80808080u;
    }
    uint2 words[4];
    turn<0>(digits, words);
    turn<1>(digits, words);
#pragma unroll
    for (int digit = 0; digit < 4; ++digit)
      reinterpret_cast<uint2*>(to + lane / 4 * kPart)[digit * 4 + lane % 4] = words[digit];
  }

  /// What lane % 4 has for set `set`.
  __device__ __forceinline__ static DigitScale scale(const unsigned char* unit, unsigned lane,
                                                     int set) {
    const auto* const all = reinterpret_cast<const DigitScale*>(unit + kDigits);
    return all[(lane % 4 / 2 * kSets + set) * 2 + lane % 2];
  }

 private:
  /// Group `part` of a lane's eight numbers, as whole numbers; and the scale of the group.
  __device__ __forceinline__ static void make_group(const float (&x)[8], int part, unsigned lane,
                                                    unsigned (&digits)[8], unsigned char* to) {
    constexpr int kEach = 8 / kParts, kLanes = kGroup < 32 ? 4 : kGroup / 8;
    unsigned largest = 0;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      largest = max(largest, __float_as_uint(x[part * kEach + i]) & 0x7fffffffu);
      sum += x[part * kEach + i];
    }
#pragma unroll
    for (int step = 1; step < kLanes; step *= 2) {
      largest = max(largest, __shfl_xor_sync(~0u, largest, step));
      if (kSums) sum += __shfl_xor_sync(~0u, sum, step);
    }
    // All are less than 2^22 times 2^(exponent - 148). Small numbers are made larger first, as no
    // float is that power.
    const unsigned exponent = max(largest >> 23, 1u), more = exponent < 64 ? 64 : 0;
    const float power = __uint_as_float((275 - exponent - more) << 23);
    const float larger = __uint_as_float((127 + more) << 23);
#pragma unroll
    for (int i = part * kEach; i < (part + 1) * kEach; ++i) {
      const float whole = fmaf(x[i] * larger, power, __uint_as_float(kWhole));
      digits[i] = __float_as_uint(whole) - kWhole;
    }
    if (lane % kLanes != 0) return;
    // The uppermost digits are times 2^24, and all are of numbers times 2^8. NaN and infinities
    // have no digits.
    float unit = __uint_as_float((exponent + more - 5) << 23) * (1.0f / Bytes::kTimes);
    unit *= __uint_as_float((127 - more) << 23);
    if (exponent == 255) unit = __uint_as_float(0x7fc00000u);
    if constexpr (Bytes::kZero != 0) sum *= 1.0f * Bytes::kZero / Bytes::kTimes;
    auto* const at = reinterpret_cast<DigitScale*>(to + kDigits) + (lane * 8 / kGroup + part) * 2;
    at[0] = {unit, sum};
    at[1] = {unit * 0x1p-16f, 0.0f};  // of the third digit and the fourth
  }

  /// One of two words with the bytes of each digit, for four numbers.
  template <int Half>
  __device__ __forceinline__ static void turn(const unsigned (&digits)[8], uint2 (&words)[4]) {
    const unsigned a = digits[Bytes::order(Half * 4)], b = digits[Bytes::order(Half * 4 + 1)];
    const unsigned c = digits[Bytes::order(Half * 4 + 2)], d = digits[Bytes::order(Half * 4 + 3)];
    const unsigned high[2] = {__byte_perm(a, b, 0x7362), __byte_perm(c, d, 0x7362)};
    const unsigned low[2] = {__byte_perm(a, b, 0x5140), __byte_perm(c, d, 0x5140)};
    const unsigned all[4] = {
        __byte_perm(high[0], high[1], 0x7632), __byte_perm(high[0], high[1], 0x5410),
        __byte_perm(low[0], low[1], 0x7632), __byte_perm(low[0], low[1], 0x5410)};
#pragma unroll
    for (int i = 0; i < 4; ++i) (Half == 0 ? words[i].x : words[i].y) = all[i];
  }
};

/// What a lane has of a unit of weights: codes, and the scales of block lane % 4 / 2.
template <typename T, typename Format>
struct DigitUnit {
  using Scales = typename Format::Scales;
  using Digits = XDigits<T, Format>;
  using Bytes = typename Digits::Bytes;
  using Codes = typename Format::Codes;
  typename Codes::Raw raw[2][2];
  typename Scales::Ready scales[2];
  bool there;  ///< the block

  /// From a copy in shared memory; `first` is the place of the unit's first block.
  __device__ __forceinline__ void load(const PackedArrays& from, const PackedPlace& first,
                                       unsigned lane, unsigned blocks) {
    // Beyond the blocks of the weights x is 0, so any codes do.
#pragma unroll
    for (unsigned u = 0; u < 2; ++u)
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        const PackedPlace place = place_in_unit(first, first.at + u < blocks ? u : 0, half);
        raw[u][half] = Codes::template load<true>(from, place, lane);
      }
    const unsigned u = lane % 4 / 2;
    there = first.at + u < blocks;
#pragma unroll
    for (unsigned half = 0; half < 2; ++half)
      scales[half] = Scales::load(from, place_in_unit(first, there ? u : 0, half)).ready();
  }

  /// Adds the products with x to the accumulators of two rows. `unit` has the digits of x, `zeros`
  /// are in front of all digits.
  __device__ __forceinline__ void multiply(const Bytes& bytes, const unsigned char* unit,
                                           const unsigned char* zeros, unsigned lane,
                                           float (&rows)[2]) const {
    int accumulators[Digits::kSets][4];
#pragma unroll
    for (int i = 0; i < Digits::kSets * 4; ++i) accumulators[i / 4][i % 4] = Digits::kWhole;
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      const bool has_unit = lane / 16 == u;
      const unsigned char* const x =
          (has_unit ? unit + u * 4 * Digits::kPart : zeros) + lane % 16 * 8;
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const uint2 b = *reinterpret_cast<const uint2*>(x + part * Digits::kPart);
        const auto upper = Bytes::words(raw[u][0], part), lower = Bytes::words(raw[u][1], part);
        if constexpr (Format::kGroup == 16) {
          bytes.multiply(accumulators[part * 2], upper, lower, 0, b.x);
          bytes.multiply(accumulators[part * 2 + 1], upper, lower, 1, b.y);
        } else {
          bytes.multiply(accumulators[part * 32 / Format::kGroup], upper, lower, b);
        }
      }
    }
    add_sets(accumulators, unit, lane, rows);
  }

 private:
  __device__ __forceinline__ void add_sets(const int (&accumulators)[Digits::kSets][4],
                                           const unsigned char* unit, unsigned lane,
                                           float (&rows)[2]) const {
    constexpr bool kCodeScales = Scales::kCodeScales;
    float all[2] = {};
#pragma unroll
    for (int set = 0; set < Digits::kSets; ++set) {
      const DigitScale x_scale = Digits::scale(unit, lane, set);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        constexpr float kBase = 12582912.0f;  // kWhole
        const float first = __int_as_float(accumulators[set][half * 2]);
        const float second = __int_as_float(accumulators[set][half * 2 + 1]);
        float sum = fmaf(second, 0x1p-8f, first - (kBase + kBase / 256)) * x_scale.unit;
        if constexpr (Bytes::kZero != 0) sum -= x_scale.sum;
        if constexpr (Scales::kOffset && !Scales::kMinima)
          sum -= scales[half].zero(set) * x_scale.sum;
        float scale;
        if constexpr (kCodeScales) {
          scale = scales[half].code_scale(set);
        } else {
          scale = scales[half].scale_at(set);
        }
        all[half] += (there ? scale : 0.0f) * sum;
        if constexpr (Scales::kMinima)
          all[half] -= (there ? scales[half].minimum(set) : 0.0f) * x_scale.sum;
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float block_scale = 1;
      if constexpr (kCodeScales) block_scale = scales[half].block_scale();
      rows[half] += all[half] * block_scale;
    }
  }
};

}  // namespace kernwright
