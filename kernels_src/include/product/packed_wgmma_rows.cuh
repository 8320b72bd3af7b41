// A warp's rows of packed weights in products by warpgroups: the weights are decoded in registers.
#pragma once

#include <kernwright/arranged_columns.cuh>
#include <kernwright/packed_walk.cuh>
#include <kernwright/spread_codes.cuh>
#include <kernwright/wgmma_rows.cuh>

namespace kernwright {

/// A if kFirst, else B.
template <bool kFirst, typename A, typename B>
struct Either {
  using Type = A;
};
template <typename A, typename B>
struct Either<false, A, B> {
  using Type = B;
};

/// A warp's 16 rows of a block of weights, and the sums of all columns. A part of 32 of k is
/// decoded while the tensor cores multiply the part before. `Warps` are those of a block that
/// multiply. Formats with minima need registers that threads of 16 warps lack where there are 64
/// columns.
template <typename T, typename Format, int Columns, int Warps>
struct WgmmaRows {
  using Ready = typename Format::Scales::Ready;
  using Codes = typename Format::Codes;
  using Step = RowProducts<T, Columns, false>;
  using Unit = ArrangedUnit<Columns, Format::Scales::kMinima>;
  static constexpr bool kMinima = Format::Scales::kMinima, kOfCodes = Format::Scales::kOfCodes;
  static constexpr int kGroup = Format::kGroup, kCount = Columns / 2;
  /// Codes times their scales are exact in T: no sums of groups are needed.
  static constexpr bool kExact = Format::Scales::template kExact<T>;
  static constexpr int kTogether = kMinima || kOfCodes ? 128 : kGroup;  ///< of k, summed at once
  static_assert(kTogether >= 32);
  /// One group's sums are scaled during the next one's products. Threads of 16 warps lack the
  /// registers.
  static constexpr bool kInTurn = !kExact && Warps <= 8 && kTogether < 128;
  static constexpr int kZero = Format::Scales::kZero;
  /// Minima, and what was taken off codes, are one number of a group in two parts of T. Float16
  /// lacks the exponents.
  static constexpr bool kOffsets = kMinima && PairBits<T>::kMantissa == 7;
  float sums[kCount], group_sums[kExact ? 1 : kCount], of_minima[kMinima && !kOffsets ? kCount : 1];
  float other_sums[kInTurn ? kCount : 1];  ///< of every second group
  unsigned lane;
  unsigned zero_at;  ///< the address of a word in shared memory, which is 0
  PairTable table;   ///< where the codes take one

  /// The additions of decode() and zeros of each group, with their sign changed, in both halves.
  struct Shifts {
    unsigned of[kZero < 0 ? 128 / kGroup : 1];
    __device__ __forceinline__ explicit Shifts(const Ready& scales) {
      if constexpr (kZero < 0) {
#pragma unroll
        for (int group = 0; group < 128 / kGroup; ++group) {
          const float value = -(scales.zero(group) + Codes::kBase);
          of[group] = pair_of<T>(value, value);
        }
      } else if constexpr (Format::kOffset) {
        of[0] = Codes::pair_with_base(kZero) | 0x80008000u;
      }
    }
    __device__ __forceinline__ unsigned at(int k) const { return of[kZero < 0 ? k / kGroup : 0]; }
  };

  /// Of formats with minima codes less half of kBase, times their group's whole number: so a block
  /// has one scale. The products have eleven bits, of which bfloat16 keeps eight.
  struct WholeScales {
    unsigned bytes;
    __device__ __forceinline__ explicit WholeScales(const Ready& scales) : bytes(scales.scales) {}
    /// Bytes `first` and `second` of six bits in two halves.
    __device__ __forceinline__ static unsigned pair(unsigned bytes, int first, int second) {
      constexpr bool kB = PairBits<T>::kMantissa == 7;
      const unsigned moved =
          __byte_perm(bytes, kB ? 0x43u : 0x64u, first | second << 8 | 0x4040);  // 128 or 1024 more
      return fma_pair(T(), moved, PairBits<T>::kOne, kB ? 0xc300c300u : 0xe400e400u);
    }
    __device__ __forceinline__ static unsigned times(unsigned pair, float factor) {
      return fma_pair(T(), pair, pair_of<T>(factor, factor), 0x80008000u);
    }
    __device__ __forceinline__ void apply(int part, unsigned (&pairs)[4]) const {
      const unsigned scale = pair(bytes, part, part), less = times(scale, -1.5f * Codes::kBase);
#pragma unroll
      for (int i = 0; i < 4; ++i) pairs[i] = fma_pair(T(), pairs[i], scale, less);
    }
    /// What multiplies a lane's two sums of x: their groups' bytes times `factor`.
    __device__ __forceinline__ static unsigned of_sums(unsigned bytes, unsigned lane,
                                                       float factor) {
      return times(pair(lane % 2 ? bytes >> 16 : bytes, 0, 1), factor);
    }
  };

  /// Codes times the scales of their groups of 16, rounded to T: so a block has one scale. Or times
  /// those that make products that T holds.
  __device__ __forceinline__ static void scale_codes(const Ready& scales, int part,
                                                     unsigned (&pairs)[4]) {
    if constexpr (kOfCodes) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float scale = scales.of_codes(part * 2 + i / 2);
        pairs[i] = fma_pair(T(), pairs[i], pair_of<T>(scale, scale), 0x80008000u);
      }
    } else if constexpr (kExact) {
      const unsigned scale = scales.template pair<T>(part * 32 / kGroup);
#pragma unroll
      for (int i = 0; i < 4; ++i) pairs[i] = fma_pair(T(), pairs[i], scale, 0x80008000u);
    }
  }

  /// Both rows' part of 32, as two steps' operands. Pairs 0 and 1 are those of the first step.
  template <typename Changes>
  __device__ __forceinline__ void decode(const Format (&raw)[2], const Ready (&scales)[2],
                                         const Changes (&changes)[2], int part,
                                         unsigned (&steps)[2][4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      unsigned pairs[4];
      if constexpr (IsSpread<Codes>::kValue) {
        Codes::decode(raw[half].codes, part, table, pairs);
      } else if constexpr (TakesPairTable<Codes>::kValue) {
        table.decode(raw[half].codes.low.word[part], pairs);
      } else {
        raw[half].decode(part, pairs);
      }
      if constexpr (kMinima) {
        changes[half].apply(part, pairs);
      } else if constexpr (Format::kOffset) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          pairs[i] =
              fma_pair(T(), pairs[i], PairBits<T>::kOne, changes[half].at(part * 32 + i / 2 * 16));
      }
      scale_codes(scales[half], part, pairs);
#pragma unroll
      for (int i = 0; i < 4; ++i) steps[i / 2][i % 2 * 2 + half] = pairs[i];
    }
  }
  /// Keeps the compiler from decoding a part before the products in front of it begin: its codes
  /// depend on a load that stays behind them.
  __device__ __forceinline__ void hold(Format (&raw)[2], int part) const {
    unsigned zero;
    asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(zero) : "r"(zero_at) : "memory");
    Codes::change(raw[0].codes, part, zero);
    Codes::change(raw[1].codes, part, zero);
  }

  __device__ __forceinline__ void wait_for_sums() {
    wait_for_products<0>();
    settle(group_sums);
  }
  __device__ __forceinline__ void add_sums(float upper, float lower,
                                           const float (&of_block)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] += (i / 2 % 2 ? lower : upper) * of_block[i];
  }
  __device__ __forceinline__ void add_group(const Ready (&scales)[2], int group) {
    if constexpr (kOfCodes) {
      add_sums(scales[0].of_block(), scales[1].of_block(), group_sums);
    } else {
      add_sums(scales[0].of(group), scales[1].of(group), group_sums);
    }
  }
  /// As finish_block(), with products that are sums already.
  __device__ __forceinline__ void finish_offsets(const Ready (&scales)[2], unsigned long long b) {
    unsigned offsets[4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Ready& of = scales[half];
      const unsigned bytes = lane % 2 ? of.scales >> 16 : of.scales;
      const unsigned less = lane % 2 ? of.minima >> 16 : of.minima;
      float values[2], left[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        values[i] = byte_times(bytes, i, of.unit * (0.5f * Codes::kBase)) -
                    byte_times(less, i, of.minimum_unit);
      const unsigned pair = pair_of<T>(values[0], values[1]);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        left[i] = values[i] - to_compute(T{static_cast<UInt16>(pair >> (16 * i))});
      offsets[half] = pair;
      offsets[half + 2] = lane % 4 < 2 ? pair : pair_of<T>(left[0], left[1]);
    }
    begin_products();
    Step::add(sums, offsets, b, 1);
    commit_products();
    wait_for_sums();
    settle(sums);
    add_sums(scales[0].unit, scales[1].unit, group_sums);
  }
  /// The minima of a block and what was taken off its codes. `b`: of the sums of x.
  __device__ __forceinline__ void finish_block(const Ready (&scales)[2], unsigned long long b) {
    unsigned less[4], minima[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float factor = SumParts<T>::factor_of(lane, i / 2);
      less[i] = WholeScales::of_sums(scales[i % 2].scales, lane, 0.5f * factor * Codes::kBase);
      minima[i] = WholeScales::of_sums(scales[i % 2].minima, lane, factor);
    }
    begin_products();
    Step::add(group_sums, less, b, 1);
    Step::add(of_minima, minima, b, 0);
    commit_products();
    wait_for_sums();
    settle(of_minima);
    add_sums(scales[0].unit, scales[1].unit, group_sums);
    add_sums(-scales[0].minimum_unit, -scales[1].minimum_unit, of_minima);
  }

  /// The products of a part of 32 begin, added to `to` but for those that begin a group.
  __device__ __forceinline__ void begin_part(const unsigned (&steps)[2][4], unsigned long long b,
                                             int part, float (&to)[kCount]) {
    begin_products();
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      const int at = part * 32 + step * 16;
      Step::add(to, steps[step], b + (at / 64 * Unit::kLines + at % 64 * 2) / 16,
                kExact || at % kTogether != 0);
    }
    commit_products();
  }
  __device__ __forceinline__ void add_in_turn(const Ready (&scales)[2], int group) {
    float(&of_group)[kCount] = group % 2 ? other_sums : group_sums;
    settle(of_group);
    add_sums(scales[0].of(group), scales[1].of(group), of_group);
  }
  __device__ __forceinline__ void multiply_in_turn(Format (&raw)[2], unsigned x) {
    const Ready scales[2] = {raw[0].scales.ready(), raw[1].scales.ready()};
    const Shifts changes[2] = {Shifts(scales[0]), Shifts(scales[1])};
    const unsigned long long b = matrix_descriptor(x, kPart);
    unsigned a[2][2][4];
    decode(raw, scales, changes, 0, a[0]);
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      begin_part(a[part % 2], b, part, part * 32 / kGroup % 2 ? other_sums : group_sums);
      if (part > 0) {
        wait_for_products<1>();
        if (part * 32 % kTogether == 0) add_in_turn(scales, (part - 1) * 32 / kGroup);
      }
      if (part < 3) {
        hold(raw, part + 1);
        decode(raw, scales, changes, part + 1, a[(part + 1) % 2]);
      }
    }
    wait_for_products<0>();
    add_in_turn(scales, 96 / kGroup);
  }
  __device__ __forceinline__ void multiply_exact(Format (&raw)[2], unsigned x) {
    const Ready scales[2] = {raw[0].scales.ready(), raw[1].scales.ready()};
    const Shifts changes[2] = {Shifts(scales[0]), Shifts(scales[1])};
    const unsigned long long b = matrix_descriptor(x, kPart);
    unsigned a[2][2][4];
    decode(raw, scales, changes, 0, a[0]);
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      begin_part(a[part % 2], b, part, sums);
      if (part == 3) break;
      if (part > 0) wait_for_products<1>();
      hold(raw, part + 1);
      decode(raw, scales, changes, part + 1, a[(part + 1) % 2]);
    }
    wait_for_products<0>();
    settle(sums);
  }
  /// When all blocks have been added: what scales of the format leave to all sums.
  __device__ __forceinline__ void finish(const PackedArrays& weights) {
    if constexpr (kExact && kOfCodes) {
      const float factor = *weights.factor;
#pragma unroll
      for (float& sum : sums) sum *= factor;
    }
  }

  /// `x` is at the block's part of the unit, `x_sums` at its sums of x; addresses in shared memory.
  __device__ __forceinline__ void multiply(Format (&raw)[2], unsigned x, unsigned x_sums) {
    if constexpr (kExact) {
      multiply_exact(raw, x);
    } else if constexpr (kInTurn) {
      multiply_in_turn(raw, x);
    } else {
      multiply_together(raw, x, x_sums);
    }
  }
  __device__ __forceinline__ void multiply_together(Format (&raw)[2], unsigned x, unsigned x_sums) {
    using Changes = typename Either<kMinima, WholeScales, Shifts>::Type;
    const Ready scales[2] = {raw[0].scales.ready(), raw[1].scales.ready()};
    const Changes changes[2] = {Changes(scales[0]), Changes(scales[1])};
    const unsigned long long b = matrix_descriptor(x, kPart);
    unsigned a[2][2][4];
    decode(raw, scales, changes, 0, a[0]);
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      begin_part(a[part % 2], b, part, group_sums);
      if (part < 3) {
        // Only the part before has the registers that this one is decoded to.
        if (part > 0 && part * 32 % kTogether != 0) wait_for_products<1>();
        hold(raw, part + 1);
        decode(raw, scales, changes, part + 1, a[(part + 1) % 2]);
      }
      if constexpr (kMinima) continue;
      if ((part + 1) * 32 % kTogether == 0) {
        wait_for_sums();
        add_group(scales, (part * 32 + 31) / kGroup);
      }
    }
    if constexpr (kOffsets) {
      finish_offsets(scales, Unit::descriptor(x_sums));
    } else if constexpr (kMinima) {
      finish_block(scales, Unit::descriptor(x_sums));
    }
  }
};

}  // namespace kernwright
