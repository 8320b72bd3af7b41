// Weights of formats whose units of 256 have one scale of their scales, for products by warpgroups:
// codes become the weights in parts of it, rounded to T once, so a unit has one sum. Sums of x for
// minima are not needed.
//
// A lane makes the words of a part of 32 of a row from what the stage has; all four lanes of a row
// apply them to their codes.
#pragma once

#include <kernwright/packed_wgmma_rows.cuh>

namespace kernwright {

__device__ __forceinline__ float flushed_reciprocal(float x) {
  float made;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(made) : "f"(x));
  return made;
}

template <typename T, typename Codes, typename Scales>
struct UnitWeights;

/// Weights of formats with minima. The scale of the scales has kParts parts, times a group's byte:
/// with one part, all weights of a group would be rounded in one direction. Further parts serve
/// float16, which would lack the exponents of minima.
template <typename T, typename Codes>
struct UnitWeights<T, Codes, BlockScales> {
  static constexpr bool kShort = PairBits<T>::kMantissa == 7;
  static constexpr float kParts = kShort ? 3 : 13, kMost = kShort ? 0x1p40f : 600;
  /// Adding it rounds to a whole number, held in the last bits.
  static constexpr float kRounding = 12582912.0f;
  static constexpr unsigned kRoundingBits = 0x4b400000u;
  BlockScales::Ready raw;
  float unit, scale_factor, minimum_factor;

  __device__ __forceinline__ explicit UnitWeights(const BlockScales::Ready& ready) : raw(ready) {
    const float part = raw.unit * (1 / kParts), least = fabsf(raw.minimum_unit) * (1 / kMost);
    const bool is_large = fabsf(part) >= least;
    unit = is_large ? part : least;
    const float inverse = unit == 0 ? 0.0f : flushed_reciprocal(unit);
    scale_factor = is_large ? kParts : raw.unit * inverse;
    minimum_factor = raw.minimum_unit * inverse;
  }
  /// Pairs: a zero subtracted from the codes, the scale, and the rest of the minimum: at most half
  /// of the scale, except for minima beyond all codes. So few digits of the rest count.
  __device__ __forceinline__ Words words(int part, unsigned moving) const {
    constexpr unsigned kLast = 0x00010001u << Codes::kPlace;  // 1 in a pair
    constexpr unsigned kLess = (Codes::based_pair(0) | 0x80008000u) - kRoundingBits * kLast;
    const float scale = byte_times(raw.scales, part, scale_factor, moving);
    const float minimum = byte_times(raw.minima, part, minimum_factor, moving);
    const float share = __saturatef(minimum * flushed_reciprocal(scale) * (1.0f / Codes::kBase));
    const float moved = fmaf(share, Codes::kBase, kRounding);
    const float rest = fmaf(moved - kRounding, scale, -minimum);
    return {__float_as_uint(moved) * kLast + kLess, round_pair<T>(scale, scale),
            round_pair<T>(rest, rest), 0};
  }
  __device__ __forceinline__ static void apply(const Words& factors, unsigned (&pairs)[4]) {
#pragma unroll
    for (unsigned& pair : pairs)
      pair = fma_pair(T(), fma_pair(T(), pair, PairBits<T>::kOne, factors.word[0]), factors.word[1],
                      factors.word[2]);
  }
};

/// q6_k: codes are subnormal numbers, so the product with the scale and the subtraction are one
/// instruction. A part is the scale of the scales times 2^-kLess.
template <typename T, typename Codes>
struct UnitWeights<T, Codes, SixScales> {
  static constexpr bool kShort = PairBits<T>::kMantissa == 7;
  static constexpr float kTimes = kShort ? 0x1p119f : 0x1p8f;  ///< so that scales of 8 bits fit
  static constexpr float kParts = kShort ? 0x1p13f : 0x1p12f;  ///< the last bit's part is 1/kTimes
  SixScales::Ready raw;
  float unit;

  __device__ __forceinline__ explicit UnitWeights(const SixScales::Ready& ready)
      : raw(ready), unit(ready.unit * kParts) {}
  /// Pairs of both groups of 16: the scale, and the product with what is taken off the codes.
  __device__ __forceinline__ Words words(int part, unsigned moving) const {
    constexpr float kLess = -SixScales::kZero / kParts;
    const float first = raw.code_scale(part * 2, moving),
                second = raw.code_scale(part * 2 + 1, moving);
    return {round_pair<T>(first * kTimes, first * kTimes),
            round_pair<T>(first * kLess, first * kLess),
            round_pair<T>(second * kTimes, second * kTimes),
            round_pair<T>(second * kLess, second * kLess)};
  }
  __device__ __forceinline__ static void apply(const Words& factors, unsigned (&pairs)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      pairs[i] = fma_pair(T(), pairs[i], factors.word[i / 2 * 2], factors.word[i / 2 * 2 + 1]);
  }
};

/// A warp's words in shared memory, of all parts of a unit. The distance of blocks leaves no bank
/// conflict among eight writing lanes. Behind the blocks are the rows' units.
template <typename T, typename Format>
struct UnitWords {
  using Scales = typename Format::Scales;
  using Weights = UnitWeights<T, typename Format::Codes, Scales>;
  static constexpr unsigned kBlock = 4 * 256 + 64, kBytes = 2 * kBlock + 64;
  unsigned char* memory;

  /// A lane computes the words of a block of a row. `copied`: the arrays of the unit.
  __device__ __forceinline__ void make(const PackedArrays& copied, unsigned lane,
                                       unsigned moving) const {
    const unsigned row = lane / 2, u = lane % 2;
    const Weights made(Scales::load(copied, {u, 0, u, 0, row % 8, row / 8}).ready());
    __syncwarp();  // all lanes have read the previous unit
#pragma unroll
    for (int part = 0; part < 4; ++part)
      *reinterpret_cast<Words*>(memory + u * kBlock + part * 256 + row * 16) =
          made.words(part, moving);
    if (u == 0) units()[row] = made.unit;
    __syncwarp();
  }
  __device__ __forceinline__ float* units() const {
    return reinterpret_cast<float*>(memory + 2 * kBlock);
  }
  /// Loads row `line` and 8 more; the loads stay behind earlier code.
  __device__ __forceinline__ void load(unsigned u, int part, unsigned line,
                                       Words (&factors)[2]) const {
    const unsigned at = shared_address(memory) + u * kBlock + part * 256 + line * 16;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(factors[half].word[0]), "=r"(factors[half].word[1]),
                     "=r"(factors[half].word[2]), "=r"(factors[half].word[3])
                   : "r"(at + half * 128)
                   : "memory");
  }
};

/// A warp's rows. The first part of a unit is decoded while the tensor cores multiply the last one
/// of the unit before.
template <typename T, typename Format, int Columns>
struct UnitRows : WarpRows<T, Format, Columns> {
  using Base = WarpRows<T, Format, Columns>;
  using Codes = typename Format::Codes;
  using Base::lane;
  float unit_accumulators[Base::kCount];
  Format raw[2];        ///< of a block
  unsigned a[2][2][4];  ///< of a part, and of the next one
  UnitWords<T, Format> words;

  __device__ __forceinline__ void load(const PackedArrays& copied, unsigned u) {
#pragma unroll
    for (unsigned half = 0; half < 2; ++half)
      raw[half].codes = Codes::template load<true>(copied, {u, 0, u, 0, lane / 4, half}, lane);
  }
  __device__ __forceinline__ void decode(int part) {
    Words factors[2];
    words.load(part / 4, part % 4, lane / 4, factors);
    this->hold(raw, part % 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      unsigned pairs[4];
      this->decode_pairs(raw[half], part % 4, pairs);
      UnitWords<T, Format>::Weights::apply(factors[half], pairs);
#pragma unroll
      for (int i = 0; i < 4; ++i) a[part % 2][i / 2][i % 2 * 2 + half] = pairs[i];
    }
  }
  /// When the arrays of a unit are there. Products of the last part of another one may not be done.
  __device__ __forceinline__ void begin(const PackedArrays& copied) {
    words.make(copied, lane, this->moving);
    load(copied, 0);
    wait_for_products<1>();
    decode(0);
  }
  /// The unit that was begun; begin_next() may begin the next one. `x`: an address in shared
  /// memory.
  template <typename BeginNext>
  __device__ __forceinline__ void multiply(const PackedArrays& copied, unsigned x,
                                           const BeginNext& begin_next) {
    const unsigned long long b = matrix_descriptor(x, kPart);
#pragma unroll
    for (int part = 0; part < 8; ++part) {
      this->begin_part(a[part % 2], b + part / 4 * (2 * Base::Unit::kLines / 16), part % 4,
                       unit_accumulators, part > 0);
      if (part == 7) break;
      if (part > 0) wait_for_products<1>();
      if (part == 3) load(copied, 1);
      decode(part + 1);
    }
    const float upper = words.units()[lane / 4], lower = words.units()[lane / 4 + 8];
    begin_next();
    wait_for_products<0>();
    settle(unit_accumulators);
    this->add_scaled(upper, lower, unit_accumulators);
  }
};

}  // namespace kernwright
