// min and max of f16 and bf16.
#include "sim/ops/floating/half_lanes.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

/// -0 is less than +0. One NaN gives the other operand, or NaN with .NaN. With .xorsign.abs the
/// magnitudes are compared and the result takes the sign of the product.
template <typename Format, bool kMax, bool kPlain>
class Extremum {
 public:
  explicit Extremum(std::uint32_t flags)
      : flushes_(!kPlain && (flags & kHalfFlushes) != 0),
        nan_wins_(!kPlain && (flags & kHalfNanWins) != 0),
        xor_sign_(!kPlain && (flags & kHalfXorSign) != 0) {}

  [[gnu::always_inline]] Half operator()(Half first, Half second) const {
    Half a = flushes_ ? Format::flush(first) : first;
    Half b = flushes_ ? Format::flush(second) : second;
    const auto sign = static_cast<Half>(xor_sign_ ? (a ^ b) & 0x8000 : 0);
    const bool a_is_nan = (a & 0x7fff) > Format::kInfinity;
    const bool b_is_nan = (b & 0x7fff) > Format::kInfinity;
    const auto keep = static_cast<Half>(xor_sign_ ? 0x7fff : 0xffff);
    a &= keep;
    b &= keep;
    const bool less = order(a) < order(b);
    const Half number = less != kMax ? a : b;
    const Half other = a_is_nan ? b : a;
    const Half result = a_is_nan || b_is_nan ? other : number;
    const bool is_nan = nan_wins_ ? a_is_nan || b_is_nan : a_is_nan && b_is_nan;
    return is_nan ? kHalfNan : static_cast<Half>(result | sign);
  }

 private:
  // Encodings as integers in the order of their values, -0 before +0. 32 bits wide on purpose: g++
  // 12 fails on masked 16-bit minima with AVX-512.
  [[gnu::always_inline]] static std::int32_t order(Half x) {
    const std::int32_t magnitude = x & 0x7fff;
    return (x & 0x8000) != 0 ? -1 - magnitude : magnitude;
  }

  bool flushes_, nan_wins_, xor_sign_;
};

/// A loop of its own for the form without modifiers.
template <typename Format, bool kMax>
OpPair by_options(const ptx::Modifiers& mods) {
  if (!mods.ftz && !mods.nan && !mods.xorsign_abs)
    return half_pair<half_op<2, Extremum<Format, kMax, true>>>(mods);
  return half_pair<half_op<2, Extremum<Format, kMax, false>>>(mods);
}

template <bool kMax>
OpPair by_format(const ptx::Modifiers& mods) {
  return is_brain(mods.type[0]) ? by_options<Brain16, kMax>(mods)
                                : by_options<Binary16, kMax>(mods);
}

}  // namespace

OpPair select_half_extremum(const ptx::Instruction& inst, const OperandWidths&) {
  if (!is_half(inst.modifiers.type[0])) return {};
  if (inst.row->handler == ptx::Handler::min) return by_format<false>(inst.modifiers);
  if (inst.row->handler == ptx::Handler::max) return by_format<true>(inst.modifiers);
  return {};
}

}  // namespace kernwright::sim::KW_SIM_NS
