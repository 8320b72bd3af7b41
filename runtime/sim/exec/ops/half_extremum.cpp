// min and max of f16 and bf16.
#include "sim/exec/ops/half_lanes.h"

namespace kernwright::sim::KW_SIM_NS {

OpPair select_half_extremum(const ptx::Instruction& inst, const OperandWidths& widths);

namespace {

/// -0 is less than +0. One NaN gives the other operand, or NaN with .NaN. With .xorsign.abs the
/// magnitudes are compared and the result takes the sign of the product.
template <typename Format, bool kMax, bool kFlush, bool kNan, bool kXorSign>
struct Extremum {
  [[gnu::always_inline]] static Half run(Half first, Half second) {
    Half a = kFlush ? Format::flush(first) : first;
    Half b = kFlush ? Format::flush(second) : second;
    const auto sign = static_cast<Half>((a ^ b) & 0x8000);
    const bool a_is_nan = (a & 0x7fff) > Format::kInfinity;
    const bool b_is_nan = (b & 0x7fff) > Format::kInfinity;
    if constexpr (kXorSign) {
      a &= 0x7fff;
      b &= 0x7fff;
    }
    const bool less = order(a) < order(b);
    Half result = less != kMax ? a : b;
    if constexpr (kXorSign) result |= sign;
    if constexpr (kNan) return a_is_nan || b_is_nan ? kHalfNan : result;
    const Half other = a_is_nan ? (kXorSign ? static_cast<Half>(b | sign) : b)
                                : (kXorSign ? static_cast<Half>(a | sign) : a);
    const Half one_nan = a_is_nan && b_is_nan ? kHalfNan : other;
    return a_is_nan || b_is_nan ? one_nan : result;
  }

 private:
  // Encodings as integers in the order of their values, -0 before +0. 32 bits wide on purpose: g++
  // 12 fails on masked 16-bit minima with AVX-512.
  [[gnu::always_inline]] static std::int32_t order(Half x) {
    const std::int32_t magnitude = x & 0x7fff;
    return (x & 0x8000) != 0 ? -1 - magnitude : magnitude;
  }
};

template <typename Format, bool kMax, bool kFlush>
OpPair by_options(const ptx::Modifiers& mods) {
  const ptx::Type type = mods.type[0];
  if (mods.nan) {
    return mods.xorsign_abs ? half_pair<Extremum<Format, kMax, kFlush, true, true>, 2>(type)
                            : half_pair<Extremum<Format, kMax, kFlush, true, false>, 2>(type);
  }
  return mods.xorsign_abs ? half_pair<Extremum<Format, kMax, kFlush, false, true>, 2>(type)
                          : half_pair<Extremum<Format, kMax, kFlush, false, false>, 2>(type);
}

template <bool kMax>
OpPair by_format(const ptx::Modifiers& mods) {
  if (is_brain(mods.type[0])) return by_options<Brain16, kMax, false>(mods);
  return mods.ftz ? by_options<Binary16, kMax, true>(mods)
                  : by_options<Binary16, kMax, false>(mods);
}

}  // namespace

OpPair select_half_extremum(const ptx::Instruction& inst, const OperandWidths&) {
  if (!is_half(inst.modifiers.type[0])) return {};
  if (inst.row->handler == ptx::Handler::min) return by_format<false>(inst.modifiers);
  if (inst.row->handler == ptx::Handler::max) return by_format<true>(inst.modifiers);
  return {};
}

}  // namespace kernwright::sim::KW_SIM_NS
