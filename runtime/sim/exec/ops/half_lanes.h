// What the families of f16 and bf16 share: elements, flushing, and loops over scalar and packed
// registers.
//
// A packed register (f16x2, bf16x2) is 64 halves side by side, so both forms run the same loop with
// another count. NOTE: sums and products of two halves are computed in float and rounded once more
// to the half: 24 bits are enough for that to equal a single rounding (2 * 11 + 2).
#pragma once

#include "sim/exec/ops/lanes.h"
#include "sim/numeric/half.h"
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

/// results[i] = F of `count` halves, a multiple of the lanes. One copy for the four handlers.
template <int kInputs, typename F>
[[gnu::noinline]] void compute_halves(Half* results, int count, const Half* a, const Half* b,
                                      const Half* c) {
  for (int done = 0; done < count; done += kLanes) {
    KW_LANES for (int i = done; i < done + kLanes; ++i) {
      if constexpr (kInputs == 1) results[i] = F::run(a[i]);
      if constexpr (kInputs == 2) results[i] = F::run(a[i], b[i]);
      if constexpr (kInputs == 3) results[i] = F::run(a[i], b[i], c[i]);
    }
  }
}

template <bool kMasked, int kCount, int kInputs, typename F>
const Op* half_op(const Op* op, Warp& warp) {
  alignas(64) Half results[kCount];
  compute_halves<kInputs, F>(results, kCount, warp.reg<Half>(op->a), warp.reg<Half>(op->b),
                             warp.reg<Half>(op->c));
  if constexpr (!kMasked) {
    std::memcpy(warp.reg<Half>(op->d), results, sizeof results);
  } else if constexpr (kCount == kLanes) {
    Half* d = warp.reg<Half>(op->d);
    blend_lanes(d, warp.mask, results, d);
  } else {
    alignas(64) std::uint32_t pairs[kLanes];
    std::memcpy(pairs, results, sizeof results);
    auto* d = warp.reg<std::uint32_t>(op->d);
    blend_lanes(d, warp.mask, pairs, d);
  }
  return op + 1;
}

inline bool is_packed(ptx::Type type) {
  return type == ptx::Type::f16x2 || type == ptx::Type::bf16x2;
}
inline bool is_brain(ptx::Type type) {
  return type == ptx::Type::bf16 || type == ptx::Type::bf16x2;
}
inline bool is_half(ptx::Type type) {
  return type == ptx::Type::f16 || type == ptx::Type::bf16 || is_packed(type);
}

/// Both handlers of a functor with kInputs operands, scalar or packed.
template <typename F, int kInputs>
OpPair half_pair(ptx::Type type) {
  if (is_packed(type)) {
    return {half_op<kFull, 2 * kLanes, kInputs, F>, half_op<true, 2 * kLanes, kInputs, F>};
  }
  return {half_op<kFull, kLanes, kInputs, F>, half_op<true, kLanes, kInputs, F>};
}

}  // namespace kernwright::sim::KW_SIM_NS
