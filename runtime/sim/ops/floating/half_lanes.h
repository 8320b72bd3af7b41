// Shared by the families of f16 and bf16: elements, flushing, and loops over scalar and packed
// registers.
//
// A packed register (f16x2, bf16x2) is 64 halves side by side, so both forms run the same loop with
// another count. NOTE: sums and products of two halves are computed in float and rounded once more
// to the half: 24 bits are enough for that to equal a single rounding (2 * 11 + 2).
#pragma once

#include "sim/numeric/half.h"
#include "sim/ops/floating/float_lanes.h"
#include "sim/ptx/isa.h"

#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

using Half = std::uint16_t;
inline constexpr Half kHalfNan = 0x7fff;

template <bool kBrain>
struct HalfFormat {
  static constexpr bool kIsBrain = kBrain;
  static constexpr Half kInfinity = kBrain ? 0x7f80 : 0x7c00;
  static constexpr Half kSmallestNormal = kBrain ? 0x0080 : 0x0400;
  static constexpr Half kOne = kBrain ? 0x3f80 : 0x3c00;

  [[gnu::always_inline]] static float read(Half x) {
    return kBrain ? numeric::bf16_to_f32(x) : numeric::f16_to_f32(x);
  }
  [[gnu::always_inline]] static Half write(float x) {
    return kBrain ? numeric::f32_to_bf16(x) : numeric::f32_to_f16(x);
  }
  [[gnu::always_inline]] static Half write(double x) {
    return kBrain ? numeric::f64_to_bf16(x) : numeric::f64_to_f16(x);
  }
  [[gnu::always_inline]] static Half flush(Half x) {
    return (x & 0x7fff) < kSmallestNormal ? static_cast<Half>(x & 0x8000) : x;
  }
};
using Binary16 = HalfFormat<false>;
using Brain16 = HalfFormat<true>;

/// Op::flags of handlers of halves: their number, a multiple of the lanes, and modifiers.
inline constexpr std::uint32_t kHalfCount = 127;
inline constexpr std::uint32_t kHalfFlushes = 1 << 8, kHalfSaturates = 1 << 9, kHalfRelu = 1 << 10;
inline constexpr std::uint32_t kHalfNanWins = 1 << 11, kHalfXorSign = 1 << 12;

inline bool is_packed(ptx::Type type) {
  return type == ptx::Type::f16x2 || type == ptx::Type::bf16x2;
}
inline bool is_brain(ptx::Type type) {
  return type == ptx::Type::bf16 || type == ptx::Type::bf16x2;
}
inline bool is_half(ptx::Type type) {
  return type == ptx::Type::f16 || type == ptx::Type::bf16 || is_packed(type);
}

inline std::uint32_t half_flags(const ptx::Modifiers& mods) {
  return (mods.ftz ? kHalfFlushes : 0) | (mods.sat ? kHalfSaturates : 0) |
         (mods.relu ? kHalfRelu : 0) | (mods.nan ? kHalfNanWins : 0) |
         (mods.xorsign_abs ? kHalfXorSign : 0) | (is_packed(mods.type[0]) ? 2u * kLanes : kLanes);
}

/// d[i] = F of halves, where F is made of Op::flags.
template <int kInputs, typename F>
const Op* half_op(const Op* op, Warp& warp) {
  Half* const d = warp.reg<Half>(op->d);
  const Half* const a = warp.reg<Half>(op->a);
  const Half* const b = warp.reg<Half>(op->b);
  const F f(op->flags);
  const int count = static_cast<int>(op->flags & kHalfCount);
  for (int done = 0; done < count; done += kLanes) {
    KW_LANES for (int i = done; i < done + kLanes; ++i) {
      if constexpr (kInputs == 1) d[i] = f(a[i]);
      if constexpr (kInputs == 2) d[i] = f(a[i], b[i]);
    }
  }
  return op + 1;
}

/// Both handlers for scalar or packed registers, from that of full warps.
template <OpFn kRun>
OpPair half_pair(const ptx::Modifiers& mods) {
  return is_packed(mods.type[0]) ? restored_pair<kRun, std::uint32_t>(half_flags(mods))
                                 : restored_pair<kRun, Half>(half_flags(mods));
}

}  // namespace kernwright::sim::KW_SIM_NS
