// The approximate functions: ex2, lg2, sin, cos, tanh, rsqrt, and the double-precision seeds.
//
// Computed in double without fused operations, so that every instruction set gives the same bits.
// The errors before the final rounding are below 1e-11, well inside what PTX allows; nearly every
// result is the correctly rounded one.
#include "sim/ops/floating/float_lanes.h"
#include "sim/ptx/isa.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

/// Adding it leaves the nearest integer in the low bits of a double below 2^51.
constexpr double kRound = 0x1.8p52;

inline std::uint64_t raw(double x) { return std::bit_cast<std::uint64_t>(x); }
inline double from_raw(std::uint64_t bits) { return std::bit_cast<double>(bits); }

inline double limit(double x, double bound) {
  const double low = x > -bound ? x : -bound;
  return low < bound ? low : bound;
}

/// The polynomial whose coefficients follow each other from the highest power to the lowest.
template <typename... More>
double horner(double x, double p, More... next) {
  ((p = p * x + next), ...);
  return p;
}

/// 2^x for |x| <= 1000.
inline double approximate_exp2(double x) {
  const double shifted = x + kRound;
  const double n = shifted - kRound;
  const double t = (x - n) * 0x1.62e42fefa39efp-1;  // ln 2
  const double p = horner(t, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24,
                          1.0 / 6, 0.5, 1.0, 1.0);
  const double scale = from_raw((raw(shifted) + 1023) << 52);
  return p * scale;
}

struct Exp2 {
  float operator()(float x) const {
    const double r = approximate_exp2(limit(x, 400.0));
    return x != x ? x : static_cast<float>(r);
  }
};

struct Log2 {
  float operator()(float x) const {
    const double wide = x;
    // Exponent and a mantissa in [sqrt(1/2), sqrt(2)).
    constexpr std::uint64_t kHalfRoot = 0x3fe6a09e667f3bcd;
    const std::uint64_t steps = (raw(wide) - kHalfRoot + (std::uint64_t{2048} << 52)) >> 52;
    const double exponent = from_raw(raw(kRound) + steps) - (kRound + 2048.0);
    const double m = from_raw(raw(wide) - ((steps - 2048) << 52));
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    const double p = horner(z, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0);
    const double r = exponent + p * s * 0x1.71547652b82fep1;  // 2 / ln 2
    const float special = x == 0 ? -INFINITY : (x > 0 ? INFINITY : NAN);
    return x > 0 && x < INFINITY ? static_cast<float>(r) : special;
  }
};

inline double sine_polynomial(double r) {
  const double z = r * r;
  return r * horner(z, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1.0);
}
inline double cosine_polynomial(double r) {
  return horner(r * r, 1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5,
                1.0);
}

/// sin(x + kQuarter * pi / 2) as GPUs compute it: x in cycles is rounded to single precision first,
/// so that the error grows with x, and from 2^24 cycles on every x is a multiple of 2 pi.
template <int kQuarter>
struct Circular {
  float operator()(float x) const {
    const float cycles = x * 0x1.45f306p-3f;  // 1 / (2 pi)
    const double quarters = 4.0 * (std::fabs(cycles) < 0x1p24f ? cycles : std::copysign(0.0f, x));
    const double shifted = quarters + kRound;
    const double r = (quarters - (shifted - kRound)) * 0x1.921fb54442d18p0;  // pi / 2
    const std::uint64_t quadrant = raw(shifted) + kQuarter;
    const double value = (quadrant & 1) != 0 ? cosine_polynomial(r) : sine_polynomial(r);
    const auto result = static_cast<float>(from_raw(raw(value) ^ ((quadrant & 2) << 62)));
    return std::fabs(x) < INFINITY ? result : NAN;
  }
};

struct HyperbolicTangent {
  float operator()(float x) const {
    const double wide = limit(x, 20.0);
    const double z = wide * wide;
    const double near = wide * (1.0 + z * (-1.0 / 3 + z * (2.0 / 15 - z * (17.0 / 315))));
    const double e = approximate_exp2(wide * 0x1.71547652b82fep1);  // 2 / ln 2: e^(2x)
    const double far = (e - 1.0) / (e + 1.0);
    const double r = z < 0.0025 ? near : far;
    return x != x ? x : static_cast<float>(r);
  }
};

struct ReciprocalRoot {
  float operator()(float x) const { return static_cast<float>(1.0 / std::sqrt(double{x})); }
  double operator()(double x) const { return 1.0 / std::sqrt(x); }
};

/// The double forms with .approx.ftz: of operand and result the upper half, the lower 32 bits are
/// zero.
template <bool kRoot>
struct Seed {
  double operator()(double x) const {
    const std::uint64_t bits = raw(x) & 0xffffffff00000000u;
    const bool tiny = (bits & 0x7ff0000000000000u) == 0;
    const double input = from_raw(tiny ? bits & 0x8000000000000000u : bits);
    const double r = kRoot ? 1.0 / std::sqrt(input) : 1.0 / input;
    const std::uint64_t result = raw(r);
    const bool finite = (result & 0x7ff0000000000000u) != 0x7ff0000000000000u;
    const std::uint64_t upper = (finite ? result + 0x80000000u : result) & 0xffffffff00000000u;
    const bool subnormal = (upper & 0x7ff0000000000000u) == 0;
    return from_raw(subnormal ? upper & 0x8000000000000000u : upper);
  }
};

}  // namespace

OpPair select_float_approx(const ptx::Instruction& inst, const OperandWidths&) {
  using ptx::Handler;
  const ptx::Modifiers& mods = inst.modifiers;
  const ptx::Type type = mods.type[0];
  if (!mods.approx || (type != ptx::Type::f32 && type != ptx::Type::f64)) return {};
  switch (inst.row->handler) {
    case Handler::ex2: return by_float<Exp2>(mods);
    case Handler::lg2: return by_float<Log2>(mods);
    case Handler::sin: return by_float_type<Circular<0>>(mods);
    case Handler::cos: return by_float_type<Circular<1>>(mods);
    case Handler::tanh: return by_float_type<HyperbolicTangent>(mods);
    case Handler::rsqrt:
      if (type == ptx::Type::f64 && mods.ftz) return unary_pair<Seed<true>, double>();
      return by_float_type<ReciprocalRoot>(mods);
    case Handler::rcp: return type == ptx::Type::f64 ? unary_pair<Seed<false>, double>() : OpPair{};
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
