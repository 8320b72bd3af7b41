// add, sub, mul, fma, abs and neg of f16 and bf16, rounded once.
//
// Halves are widened, computed and narrowed a row of lanes at a time, by functions common to all
// instructions.
#include "sim/ops/floating/half_lanes.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

struct alignas(64) Row {
  float lane[kLanes];
};

template <typename Format>
[[gnu::noinline]] void read_row(Row& row, const Half* from, bool flushes) {
  alignas(64) Half halves[kLanes];
  for (int i = 0; i < kLanes; ++i) halves[i] = flushes ? Format::flush(from[i]) : from[i];
#if defined(__F16C__)
  if constexpr (!Format::kIsBrain) {
    for (int i = 0; i < kLanes; i += 8)
      _mm256_store_ps(
          row.lane + i,
          _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(halves + i))));
    return;
  }
#endif
  for (int i = 0; i < kLanes; ++i) row.lane[i] = Format::read(halves[i]);
}

/// .sat: to [0, 1], NaN gives 0. .relu: negative numbers and -0 give +0, NaN stays.
template <typename T>
[[gnu::always_inline]] inline T finish(T x, bool saturates, bool relu) {
  const T low = x > T{0} ? x : T{0};
  const T clipped = x != x ? x : low;
  return saturates ? clamp_unit(x) : relu ? clipped : x;
}

/// .ftz of f16 flushes results below the least normal number in 11 bits with any exponent; as on an
/// H200.
constexpr float kLeastUnflushed = 0x1p-14f - 0x1p-26f;

/// Rounds to the half. Takes Op::flags.
template <typename Format>
[[gnu::noinline]] void write_row(Half* to, Row& row, std::uint32_t flags) {
  if ((flags & kHalfFlushes) != 0) {
    for (float& x : row.lane) x = std::fabs(x) < kLeastUnflushed ? std::copysign(0.0f, x) : x;
  }
  if ((flags & (kHalfSaturates | kHalfRelu)) != 0) {
    const bool saturates = (flags & kHalfSaturates) != 0;
    for (float& x : row.lane) x = finish(x, saturates, !saturates);
  }
#if defined(__F16C__)
  if constexpr (!Format::kIsBrain) {
    for (int i = 0; i < kLanes; i += 8) {
      const __m256 x = _mm256_load_ps(row.lane + i);
      // The upper bits of this NaN are the half's one NaN.
      const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
      const __m256 one_nan = _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm256_cvtps_ph(one_nan, _MM_FROUND_TO_NEAREST_INT));
    }
    return;
  }
#endif
  for (int i = 0; i < kLanes; ++i) to[i] = Format::write(row.lane[i]);
}

/// The product of two f16 is exact in float, also as a multiple of the smallest number, and the sum
/// is rounded to odd: the half gets the only rounding.
using FusedToOdd = decltype([](float a, float b, float c) {
  return numeric::fused_to_odd(a, b, c);
});

template <typename F, typename Format>
const Op* arithmetic(const Op* op, Warp& warp) {
  const bool flushes = (op->flags & kHalfFlushes) != 0;
  const auto count = static_cast<int>(op->flags & kHalfCount);
  for (int i = 0; i < count; i += kLanes) {
    Row a, b, c;
    read_row<Format>(a, warp.reg<Half>(op->a) + i, flushes);
    read_row<Format>(b, warp.reg<Half>(op->b) + i, flushes);
    if constexpr (kInputs<F> == 3) read_row<Format>(c, warp.reg<Half>(op->c) + i, flushes);
    for (int k = 0; k < kLanes; ++k)
      a.lane[k] = visit_inputs<F>(a.lane[k], b.lane[k], c.lane[k], F{});
    write_row<Format>(warp.reg<Half>(op->d) + i, a, op->flags);
  }
  return op + 1;
}

template <typename F>
OpPair arithmetic_pair(const ptx::Modifiers& mods) {
  return is_brain(mods.type[0]) ? half_pair<arithmetic<F, Brain16>>(mods)
                                : half_pair<arithmetic<F, Binary16>>(mods);
}

/// Products of bf16 need the exponents of double.
const Op* fused_brain(const Op* op, Warp& warp) {
  const auto count = static_cast<int>(op->flags & kHalfCount);
  const bool relu = (op->flags & kHalfRelu) != 0;
  const Half* const a = warp.reg<Half>(op->a);
  const Half* const b = warp.reg<Half>(op->b);
  const Half* const c = warp.reg<Half>(op->c);
  Half* const d = warp.reg<Half>(op->d);
  KW_LANES for (int i = 0; i < count; ++i) {
    const double x = Brain16::read(a[i]), y = Brain16::read(b[i]), z = Brain16::read(c[i]);
    d[i] = Brain16::write(finish(numeric::fused_to_odd(x, y, z), false, relu));
  }
  return op + 1;
}

/// .oob: products with the tensor map's fill value for elements outside the tensor are dropped,
/// addend and all. On an H100 this NaN counts in a and b, with either sign, and not in c.
template <OpFn kFused>
const Op* fused_in_bounds(const Op* op, Warp& warp) {
  constexpr Half kFill = 0x7ff7;
  const auto count = static_cast<int>(op->flags & kHalfCount);
  const Half* const a = warp.reg<Half>(op->a);
  const Half* const b = warp.reg<Half>(op->b);
  Half* const d = warp.reg<Half>(op->d);
  alignas(64) Half keeps[2 * kLanes];  // of the sources, which may be the result's register
  for (int i = 0; i < count; ++i) {
    keeps[i] = (a[i] & 0x7fff) == kFill || (b[i] & 0x7fff) == kFill ? 0 : 0xffff;
  }
  kFused(op, warp);
  for (int i = 0; i < count; ++i) d[i] &= keeps[i];
  return op + 1;
}

template <OpFn kFused>
OpPair fused_pair(const ptx::Modifiers& mods) {
  return mods.oob ? half_pair<fused_in_bounds<kFused>>(mods) : half_pair<kFused>(mods);
}

/// abs and neg work on the sign bit; NaN becomes the one NaN of GPUs.
template <typename Format, bool kNegate>
struct Sign {
  bool flushes;
  explicit Sign(std::uint32_t flags) : flushes((flags & kHalfFlushes) != 0) {}
  [[gnu::always_inline]] Half operator()(Half x) const {
    const Half from = flushes ? Format::flush(x) : x;
    const auto result = static_cast<Half>(kNegate ? from ^ 0x8000 : from & 0x7fff);
    return (x & 0x7fff) > Format::kInfinity ? kHalfNan : result;
  }
};

template <bool kNegate>
OpPair sign(const ptx::Modifiers& mods) {
  return is_brain(mods.type[0]) ? half_pair<half_op<1, Sign<Brain16, kNegate>>>(mods)
                                : half_pair<half_op<1, Sign<Binary16, kNegate>>>(mods);
}

}  // namespace

OpPair select_half(const ptx::Instruction& inst, const OperandWidths&) {
  using ptx::Handler;
  const ptx::Modifiers& mods = inst.modifiers;
  if (!is_half(mods.type[0])) return {};
  switch (inst.row->handler) {
    case Handler::add: return arithmetic_pair<Add>(mods);
    case Handler::sub: return arithmetic_pair<Subtract>(mods);
    case Handler::mul: return arithmetic_pair<Multiply>(mods);
    case Handler::fma:
      return is_brain(mods.type[0]) ? fused_pair<fused_brain>(mods)
                                    : fused_pair<arithmetic<FusedToOdd, Binary16>>(mods);
    case Handler::abs: return sign<false>(mods);
    case Handler::neg: return sign<true>(mods);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
