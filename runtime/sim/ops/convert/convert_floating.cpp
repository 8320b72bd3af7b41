// cvt between f16, bf16, f32 and f64, and to integral values.
//
// NaN as measured on GPUs: from f64 it keeps its sign and the top of its payload; a plain move
// between f32 and itself or from bf16 keeps all bits; everything else gives the one NaN of the
// result's type.
#include "sim/ops/convert/convert_lanes.h"
#include "sim/ops/floating/half_lanes.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Rounding;
using ptx::Type;

// ---- reading and writing one lane in the arithmetic type (float, or double where f64 takes part)

template <typename Format, bool kBrain>
struct HalfLane {
  using Register = Half;
  static float read(Half x) { return HalfFormat<kBrain>::read(x); }
  static Half write(float x) { return HalfFormat<kBrain>::write(x); }
  static Half write(double x) {
    const Half nan = static_cast<Half>(numeric::narrow_nan<Format>(x));
    return x != x ? nan : HalfFormat<kBrain>::write(x);
  }
};
template <Type kType>
struct Lane;
template <>
struct Lane<Type::f16> : HalfLane<numeric::F16, false> {};
template <>
struct Lane<Type::bf16> : HalfLane<numeric::BF16, true> {};
template <>
struct Lane<Type::f32> {
  using Register = float;
  static float read(float x) { return x; }
  static float write(float x) { return canonical(x); }
  static float write(double x) { return static_cast<float>(x); }
};
template <>
struct Lane<Type::f64> {
  using Register = double;
  static double read(double x) { return x; }
  static double write(double x) { return x; }
};

/// One lane: flush, round to an integral value, clamp, round to nearest, flush.
template <Type kTo, Type kFrom, Rounding kIntegral, bool kFlush, bool kSat>
struct Convert {
  using From = typename Lane<kFrom>::Register;
  static constexpr bool kIsMove = kTo == Type::f32 && kIntegral == Rounding::none && !kFlush &&
                                  !kSat && (kFrom == Type::f32 || kFrom == Type::bf16);
  typename Lane<kTo>::Register operator()(From from) const {
    auto x = Lane<kFrom>::read(from);
    if constexpr (kFlush && kFrom == Type::f32 && kTo == Type::f64) x = canonical(x);
    if constexpr (kFlush && kFrom == Type::f32 && kTo != Type::f16) x = flush(x);
    if constexpr (kIsMove) return x;
    if constexpr (kIntegral != Rounding::none) x = numeric::round_integral<kIntegral>(x);
    if constexpr (kSat) x = clamp_unit(x);
    auto result = Lane<kTo>::write(x);
    if constexpr (kFlush && kTo == Type::f32) result = flush(result);
    return result;
  }
};

/// Only the forms of .sat with their own loops come here: see is_common().
template <Type kTo, Type kFrom, Rounding kIntegral>
OpPair by_flags(const ptx::Modifiers& mods) {
  using D = typename Lane<kTo>::Register;
  using S = typename Lane<kFrom>::Register;
  constexpr bool kSingle = kTo == Type::f32 || kFrom == Type::f32;
  if constexpr (kTo == kFrom) {
    if (mods.sat) {
      return kSingle && mods.ftz ? unary_pair<Convert<kTo, kFrom, kIntegral, kSingle, true>, D, S>()
                                 : unary_pair<Convert<kTo, kFrom, kIntegral, false, true>, D, S>();
    }
  }
  if constexpr (kSingle) {
    if (mods.ftz) return unary_pair<Convert<kTo, kFrom, kIntegral, true, false>, D, S>();
  }
  return unary_pair<Convert<kTo, kFrom, kIntegral, false, false>, D, S>();
}

/// The same type on both sides: a copy, or a rounding to integral values.
template <Type kType>
OpPair same_type(const ptx::Modifiers& mods) {
  switch (mods.rounding) {
    case Rounding::rni: return by_flags<kType, kType, Rounding::rni>(mods);
    case Rounding::rzi: return by_flags<kType, kType, Rounding::rzi>(mods);
    case Rounding::rmi: return by_flags<kType, kType, Rounding::rmi>(mods);
    case Rounding::rpi: return by_flags<kType, kType, Rounding::rpi>(mods);
    default: return by_flags<kType, kType, Rounding::none>(mods);
  }
}

template <Type kTo>
OpPair from_type(const ptx::Modifiers& mods) {
  if (mods.type[1] == kTo) return same_type<kTo>(mods);
  switch (mods.type[1]) {
    case Type::f16: return by_flags<kTo, Type::f16, Rounding::none>(mods);
    case Type::bf16: return by_flags<kTo, Type::bf16, Rounding::none>(mods);
    case Type::f32: return by_flags<kTo, Type::f32, Rounding::none>(mods);
    default: return by_flags<kTo, Type::f64, Rounding::none>(mods);
  }
}

/// The rarer forms, lane by lane; Op::flags is a ConvertFlags.
const Op* convert_any_floating(const Op* op, Warp& warp) {
  const ConvertFlags flags = convert_flags(op);
  const bool flushes_input = flags.flushes && flags.result != Type::f16;
  const bool keeps_nan = flags.source == Type::f64;
  for_active<true>(warp, [&](int i) {
    double x = load_floating(warp, op->a, flags.source, flushes_input, i);
    if (flags.saturates) x = clamp_unit(x);
    std::uint64_t bits = encode_floating(x, flags.result, flags.rounding, flags.finish());
    if (keeps_nan && x != x) {
      bits = visit_format(flags.result,
                          [&]<typename Format>() { return numeric::narrow_nan<Format>(x); });
    }
    if (flags.flushes && flags.result == Type::f32 && (bits & 0x7f800000u) == 0) {
      bits &= 0x80000000u;
    }
    store_lane(warp, op->d, flags.result_bytes(), i, bits);
  });
  return op + 1;
}

/// Whether a loop of its own is worth its size: directed roundings, and .sat between two types, are
/// rare. A widened bf16 is exact in any rounding.
bool is_common(const ptx::Modifiers& mods) {
  const bool widens = mods.type[1] == Type::bf16 && mods.type[0] != Type::f16;
  const bool directed = !widens && (mods.rounding == Rounding::rz ||
                                    mods.rounding == Rounding::rm || mods.rounding == Rounding::rp);
  const bool between = mods.type[0] != mods.type[1];
  return !directed && !mods.relu && !mods.satfinite && !(mods.sat && between);
}

}  // namespace

OpPair select_convert_floating(const ptx::Instruction& inst, const OperandWidths& widths) {
  if (inst.row->handler != ptx::Handler::cvt || inst.modifiers.verb != ptx::Verb::none) return {};
  const ptx::Modifiers& mods = inst.modifiers;
  const Type to = mods.type[0];
  if (!is_floating(to) || !is_floating(mods.type[1])) return {};
  if (!is_common(mods)) return convert_pair(convert_any_floating, inst, widths);
  switch (to) {
    case Type::f16: return from_type<Type::f16>(mods);
    case Type::bf16: return from_type<Type::bf16>(mods);
    case Type::f32: return from_type<Type::f32>(mods);
    default: return from_type<Type::f64>(mods);
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
