// Single and double precision rounded to nearest: add, sub, mul, fma, div, rcp, sqrt, and the
// operations on signs and order.
#include "sim/ops/floating/float_lanes.h"
#include "sim/ptx/isa.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

/// div.approx: the reciprocal of a large b is subnormal and counts as zero (so the PTX manual).
using DivideApproximately = decltype([]<typename T>(T a, T b) {
  const bool large = std::fabs(b) > T{0x1p126f} && std::fabs(b) < T{INFINITY};
  return large ? a * std::copysign(T{0}, b) : a / b;
});

template <typename T>
using FloatBits = SizedInteger<sizeof(T)>;
template <typename T>
constexpr FloatBits<T> kSign = FloatBits<T>{1} << (8 * sizeof(T) - 1);

template <typename T>
FloatBits<T> float_bits(T x) {
  return std::bit_cast<FloatBits<T>>(x);
}

/// An H200's result for a NaN in abs and neg, left open by the PTX manual: the canonical NaN of
/// f32, in f64 the operand's own, quiet.
template <typename T>
T not_signed(T nan, T number) {
  if constexpr (sizeof(T) == 8) {
    const T quiet = std::bit_cast<T>(float_bits(nan) | FloatBits<T>{1} << 51);
    return nan != nan ? quiet : number;
  } else {
    return nan != nan ? std::bit_cast<T>(FloatBits<T>{0x7fffffff}) : number;
  }
}

using Absolute = decltype([]<typename T>(T a) {
  return not_signed(a, std::bit_cast<T>(float_bits(a) & ~kSign<T>));
});
using Negate = decltype([]<typename T>(T a) {
  return not_signed(a, std::bit_cast<T>(float_bits(a) ^ kSign<T>));
});
using CopySign = decltype([]<typename T>(T a, T b) {
  return std::bit_cast<T>((float_bits(b) & ~kSign<T>) | (float_bits(a) & kSign<T>));
});

/// min and max: -0 is less than +0; one NaN gives the other operand, or NaN with .NaN. With
/// .xorsign.abs the magnitudes are compared and the result takes the product's sign.
template <bool kMax, bool kNan, bool kXorSign>
struct Extremum {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (kXorSign) {
      const FloatBits<T> sign = (float_bits(a) ^ float_bits(b)) & kSign<T>;
      const T r = choose(Absolute{}(a), Absolute{}(b));
      return r != r ? r : std::bit_cast<T>(float_bits(r) | sign);
    }
    return choose(a, b);
  }

 private:
  template <typename T>
  static T choose(T a, T b) {
    const bool a_is_nan = a != a, b_is_nan = b != b;
    // Equal values differ at most in the sign of zero.
    const FloatBits<T> x = float_bits(a), y = float_bits(b);
    const T same = std::bit_cast<T>(kMax ? x & y : x | y);
    const T ordered = a == b ? same : ((a < b) != kMax ? a : b);
    const T propagated = a_is_nan ? (kNan ? a : b) : (b_is_nan ? (kNan ? b : a) : ordered);
    return propagated;
  }
};

template <bool kMax>
OpPair select_extremum(const ptx::Modifiers& mods) {
  if (mods.nan) {
    return mods.xorsign_abs ? by_float_type<Extremum<kMax, true, true>>(mods)
                            : by_float_type<Extremum<kMax, true, false>>(mods);
  }
  return mods.xorsign_abs ? by_float_type<Extremum<kMax, false, true>>(mods)
                          : by_float<Extremum<kMax, false, false>>(mods);
}

/// abs and neg: they touch the sign alone.
template <typename F>
OpPair sign_pair(const ptx::Modifiers& mods) {
  if (mods.type[0] == ptx::Type::f64) return unary_pair<F, double>();
  struct FlushingFirst {
    float operator()(float x) const { return F{}(flush(x)); }
  };
  return mods.ftz ? unary_pair<FlushingFirst, float>() : unary_pair<F, float>();
}

enum class Property : std::uint8_t { finite = 1, infinite, number, notanumber, normal, subnormal };

template <typename T>
bool has_property(Property property, FloatBits<T> bits) {
  constexpr int kMantissa = sizeof(T) == 8 ? 52 : 23;
  constexpr FloatBits<T> kInfinity =
      (FloatBits<T>{1} << (8 * sizeof(T) - 1)) - (FloatBits<T>{1} << kMantissa);
  const FloatBits<T> magnitude = bits & ~kSign<T>;
  switch (property) {
    case Property::finite: return magnitude < kInfinity;
    case Property::infinite: return magnitude == kInfinity;
    case Property::number: return magnitude <= kInfinity;
    case Property::notanumber: return magnitude > kInfinity;
    case Property::normal:
      return magnitude == 0 || (magnitude < kInfinity && magnitude >> kMantissa != 0);
    default: return magnitude != 0 && magnitude >> kMantissa == 0;
  }
}

/// Op::flags is the Property. For full warps too.
template <typename T>
const Op* testp(const Op* op, Warp& warp) {
  const auto* a = warp.reg<FloatBits<T>>(op->a);
  std::uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) {
    const bool holds = has_property<T>(static_cast<Property>(op->flags), a[i]);
    bits |= static_cast<std::uint32_t>(holds) << i;
  }
  write_predicate<true>(warp, op->d, bits);
  return op + 1;
}

template <typename T>
OpPair select_testp(std::uint8_t property) {
  if (property < static_cast<std::uint8_t>(Property::finite) ||
      property > static_cast<std::uint8_t>(Property::subnormal))
    return {};
  return {testp<T>, testp<T>, property};
}

}  // namespace

OpPair select_float(const ptx::Instruction& inst, const OperandWidths&) {
  using ptx::Handler;
  using ptx::Rounding;
  const ptx::Modifiers& mods = inst.modifiers;
  const ptx::Type type = mods.type[0];
  if (type != ptx::Type::f32 && type != ptx::Type::f64) return {};
  const bool nearest = mods.rounding == Rounding::none || mods.rounding == Rounding::rn;
  if (!nearest) return {};
  switch (inst.row->handler) {
    case Handler::add: return by_float<Add>(mods);
    case Handler::sub: return by_float<Subtract>(mods);
    case Handler::mul: return by_float<Multiply>(mods);
    case Handler::fma:
    case Handler::mad: return by_float<Fused>(mods);
    // The approximate and full-range single-precision forms are correctly rounded here.
    case Handler::div:
      return mods.approx ? by_float_type<DivideApproximately>(mods) : by_float_type<Divide>(mods);
    case Handler::rcp:
      return type == ptx::Type::f64 && mods.approx ? OpPair{} : by_float_type<Reciprocal>(mods);
    case Handler::sqrt: return by_float_type<SquareRoot>(mods);
    case Handler::min: return select_extremum<false>(mods);
    case Handler::max: return select_extremum<true>(mods);
    case Handler::abs: return sign_pair<Absolute>(mods);
    case Handler::neg: return sign_pair<Negate>(mods);
    case Handler::copysign:
      return type == ptx::Type::f64 ? binary_pair<CopySign, double>()
                                    : binary_pair<CopySign, float>();
    case Handler::testp:
      return type == ptx::Type::f64 ? select_testp<double>(mods.selector)
                                    : select_testp<float>(mods.selector);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
