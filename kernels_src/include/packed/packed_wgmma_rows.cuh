// A warp's rows of packed weights in products by warpgroups: the weights are decoded in registers.
#pragma once

#include <kernwright/arranged_columns.cuh>
#include <kernwright/packed_walk.cuh>
#include <kernwright/spread_codes.cuh>
#include <kernwright/wgmma_rows.cuh>

namespace kernwright {

/// A warp's 16 rows of a block of weights, and the accumulators of all columns. A part of 32 of k
/// is decoded while the tensor cores multiply the part before.
template <typename T, typename Format, int Columns>
struct WarpRows {
  using Codes = typename Format::Codes;
  using Step = RowProducts<T, Columns, false>;
  using Unit = ArrangedUnit<Columns>;
  static constexpr int kCount = Columns / 2;
  static constexpr unsigned kMask = CodeMask<Codes>::kValue;
  static constexpr bool kPlain = Format::Scales::kPlain;
  float accumulators[kCount];
  unsigned lane;
  unsigned zero_at;  ///< the address of a word in shared memory, which is 0
  PairTable table;   ///< where the codes take one
  /// Constants that the compiler does not know: it would move them to registers before each use.
  unsigned mask, moving;

  __device__ __forceinline__ void start(unsigned lane_here, const unsigned* zero,
                                        const unsigned char* lane_table) {
    lane = lane_here;
    zero_at = shared_address(zero);
    table.lane_table = lane_table;
    mask = kMask | *zero;
    moving = kMovesBytes | *zero;
#pragma unroll
    for (float& sum : accumulators) sum = 0;
  }

  __device__ __forceinline__ void decode_pairs(const Format& raw, int part,
                                               unsigned (&pairs)[4]) const {
    if constexpr (IsSpread<Codes>::kValue) {
      Codes::template decode<kPlain>(raw.codes, part, table, mask, pairs);
    } else if constexpr (TakesPairTable<Codes>::kValue) {
      table.decode(raw.codes.low.word[part], pairs);
    } else if constexpr (kMask != 0) {
      Codes::template decode_masked<kPlain>(raw.codes, part, mask, pairs);
    } else {
      raw.decode(part, pairs);
    }
  }
  /// Keeps the compiler from decoding a part before the previous products begin: the codes depend
  /// on a load that stays behind these products.
  __device__ __forceinline__ void hold(Format (&raw)[2], int part) const {
    unsigned zero;
    asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(zero) : "r"(zero_at) : "memory");
    Codes::change(raw[0].codes, part, zero);
    Codes::change(raw[1].codes, part, zero);
  }
  /// Adds a group's accumulators; `upper` and `lower` are scales of both rows.
  __device__ __forceinline__ void add_scaled(float upper, float lower,
                                             const float (&parts)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) accumulators[i] += (i / 2 % 2 ? lower : upper) * parts[i];
  }
  /// Queues the products of a part of 32; they are added to `to`, or replace it.
  __device__ __forceinline__ void begin_part(const unsigned (&steps)[2][4], unsigned long long b,
                                             int part, float (&to)[kCount], bool adds) {
    begin_products();
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      const int at = part * 32 + step * 16;
      Step::add(to, steps[step], b + (at / 64 * Unit::kLines + at % 64 * 2) / 16, step > 0 || adds);
    }
    commit_products();
  }
};

/// The rows of formats whose scales belong to groups, or are exact with the codes. `Warps` is the
/// number of consumer warps of a block.
template <typename T, typename Format, int Columns, int Warps>
struct WgmmaRows : WarpRows<T, Format, Columns> {
  using Base = WarpRows<T, Format, Columns>;
  using Ready = typename Format::Scales::Ready;
  using Codes = typename Format::Codes;
  using Base::add_scaled, Base::begin_part, Base::hold, Base::decode_pairs, Base::kCount,
      Base::accumulators;
  static constexpr int kGroup = Format::kGroup;
  /// Codes times their scales are exact in T: no accumulators of groups are needed.
  static constexpr bool kExact = Format::Scales::template kExact<T>;
  static_assert(kGroup >= 32 || kExact);
  /// One group's accumulators are scaled during the next one's products. Threads of 16 warps lack
  /// the registers.
  static constexpr bool kInTurn = !kExact && Warps <= 8 && kGroup < 128;
  static constexpr int kZero = Format::Scales::kZero;
  float group_accumulators[kExact ? 1 : kCount];
  float other_accumulators[kInTurn ? kCount : 1];  ///< of every second group

  /// The additions of decode() and zeros of each group, with their sign changed, in both halves.
  struct Shifts {
    unsigned pairs[kZero < 0 ? 128 / kGroup : 1];
    __device__ __forceinline__ explicit Shifts(const Ready& scales) {
      if constexpr (kZero < 0) {
#pragma unroll
        for (int group = 0; group < 128 / kGroup; ++group) {
          const float value = -(scales.zero(group) + Codes::kBase);
          pairs[group] = round_pair<T>(value, value);
        }
      } else if constexpr (Format::kOffset) {
        pairs[0] = Codes::based_pair(kZero) | 0x80008000u;
      }
    }
    __device__ __forceinline__ unsigned at(int k) const {
      return pairs[kZero < 0 ? k / kGroup : 0];
    }
  };

  /// Codes times the scales that make products which T holds.
  __device__ __forceinline__ static void scale_codes(const Ready& scales, int part,
                                                     unsigned (&pairs)[4]) {
    if constexpr (kExact) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        unsigned scale;
        if constexpr (Format::Scales::kCodeScales) {
          const float value = scales.code_scale(part * 2 + i / 2);
          scale = round_pair<T>(value, value);
        } else {
          scale = scales.template pair<T>(part * 32 / kGroup);
        }
        pairs[i] = fma_pair(T(), pairs[i], scale, 0x80008000u);
      }
    }
  }

  /// Both rows' part of 32, as fragments of two steps. Pairs 0 and 1 belong to the first step.
  __device__ __forceinline__ void decode(const Format (&raw)[2], const Ready (&scales)[2],
                                         const Shifts (&changes)[2], int part,
                                         unsigned (&steps)[2][4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      unsigned pairs[4];
      decode_pairs(raw[half], part, pairs);
      if constexpr (Format::kOffset) {
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
  __device__ __forceinline__ void wait_for_group() {
    wait_for_products<0>();
    settle(group_accumulators);
  }
  __device__ __forceinline__ void add_group(const Ready (&scales)[2], int group) {
    add_scaled(scales[0].scale_at(group), scales[1].scale_at(group), group_accumulators);
  }
  __device__ __forceinline__ void add_in_turn(const Ready (&scales)[2], int group) {
    float(&now)[kCount] = group % 2 ? other_accumulators : group_accumulators;
    settle(now);
    add_scaled(scales[0].scale_at(group), scales[1].scale_at(group), now);
  }
  __device__ __forceinline__ void multiply_in_turn(Format (&raw)[2], unsigned x) {
    const Ready scales[2] = {raw[0].scales.ready(), raw[1].scales.ready()};
    const Shifts changes[2] = {Shifts(scales[0]), Shifts(scales[1])};
    const unsigned long long b = matrix_descriptor(x, kPart);
    unsigned a[2][2][4];
    decode(raw, scales, changes, 0, a[0]);
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      begin_part(a[part % 2], b, part,
                 part * 32 / kGroup % 2 ? other_accumulators : group_accumulators,
                 part * 32 % kGroup != 0);
      if (part > 0) {
        wait_for_products<1>();
        if (part * 32 % kGroup == 0) add_in_turn(scales, (part - 1) * 32 / kGroup);
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
      begin_part(a[part % 2], b, part, accumulators, true);
      if (part == 3) break;
      if (part > 0) wait_for_products<1>();
      hold(raw, part + 1);
      decode(raw, scales, changes, part + 1, a[(part + 1) % 2]);
    }
    wait_for_products<0>();
    settle(accumulators);
  }
  /// When all blocks have been added: what scales of the format leave to all accumulators.
  __device__ __forceinline__ void finish(const PackedArrays& weights) {
    if constexpr (kExact && Format::Scales::kCodeScales) {
      const float factor = *weights.factor;
#pragma unroll
      for (float& sum : accumulators) sum *= factor;
    }
  }

  /// `x` is the address in shared memory of the block's part of the unit.
  __device__ __forceinline__ void multiply(Format (&raw)[2], unsigned x) {
    if constexpr (kExact) {
      multiply_exact(raw, x);
    } else if constexpr (kInTurn) {
      multiply_in_turn(raw, x);
    } else {
      multiply_together(raw, x);
    }
  }
  __device__ __forceinline__ void multiply_together(Format (&raw)[2], unsigned x) {
    const Ready scales[2] = {raw[0].scales.ready(), raw[1].scales.ready()};
    const Shifts changes[2] = {Shifts(scales[0]), Shifts(scales[1])};
    const unsigned long long b = matrix_descriptor(x, kPart);
    unsigned a[2][2][4];
    decode(raw, scales, changes, 0, a[0]);
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      begin_part(a[part % 2], b, part, group_accumulators, part * 32 % kGroup != 0);
      if (part < 3) {
        // Only the part before has the registers that this one is decoded to.
        if (part > 0 && part * 32 % kGroup != 0) wait_for_products<1>();
        hold(raw, part + 1);
        decode(raw, scales, changes, part + 1, a[(part + 1) % 2]);
      }
      if ((part + 1) * 32 % kGroup == 0) {
        wait_for_group();
        add_group(scales, (part * 32 + 31) / kGroup);
      }
    }
  }
};

}  // namespace kernwright
