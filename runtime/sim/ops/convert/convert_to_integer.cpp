// cvt from floating point to integers: rounded, clamped to the range, NaN as PTX defines it.
#include "sim/ops/convert/convert_lanes.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Rounding;

template <Rounding kMode, typename I>
struct ToInteger {
  template <typename T>
  I operator()(T x) const {
    constexpr bool kFromDouble = std::is_same_v<T, double>;
    return numeric::to_integer<I, kFromDouble>(numeric::round_integral<kMode>(x));
  }
};

template <typename T, typename I>
OpPair by_mode(Rounding mode) {
  switch (mode) {
    case Rounding::rni: return unary_pair<ToInteger<Rounding::rni, I>, I, T>();
    case Rounding::rzi: return unary_pair<ToInteger<Rounding::rzi, I>, I, T>();
    case Rounding::rmi: return unary_pair<ToInteger<Rounding::rmi, I>, I, T>();
    default: return unary_pair<ToInteger<Rounding::rpi, I>, I, T>();
  }
}

template <typename T>
OpPair select_fast(ptx::Type to, int bytes, Rounding mode) {
  using ptx::Type;
  if (bytes == 4 && to == Type::s32) return by_mode<T, std::int32_t>(mode);
  if (bytes == 4 && to == Type::u32) return by_mode<T, std::uint32_t>(mode);
  if (bytes == 8 && to == Type::s64) return by_mode<T, std::int64_t>(mode);
  if (bytes == 8 && to == Type::u64) return by_mode<T, std::uint64_t>(mode);
  return {};
}

double round_lane(double x, Rounding mode) {
  switch (mode) {
    case Rounding::rni: return numeric::round_integral<Rounding::rni>(x);
    case Rounding::rzi: return numeric::round_integral<Rounding::rzi>(x);
    case Rounding::rmi: return numeric::round_integral<Rounding::rmi>(x);
    default: return numeric::round_integral<Rounding::rpi>(x);
  }
}

/// Every pair of types, lane by lane (a double holds each source exactly). Op::flags: ConvertFlags.
const Op* convert_any_to_integer(const Op* op, Warp& warp) {
  const ConvertFlags flags = convert_flags(op);
  const IntegerType to = integer_type(flags.result);
  for_active<true>(warp, [&](int i) {
    const double x = load_floating(warp, op->a, flags.source, flags.flushes, i);
    const double rounded = round_lane(x, flags.rounding);
    const std::uint64_t bits = visit_integer(to, [&]<typename I>() {
      const I value = flags.source == ptx::Type::f64 ? numeric::to_integer<I, true>(rounded)
                                                     : numeric::to_integer<I, false>(rounded);
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    });
    store_lane(warp, op->d, flags.result_bytes(), i, bits);
  });
  return op + 1;
}

}  // namespace

OpPair select_convert_to_integer(const ptx::Instruction& inst, const OperandWidths& widths) {
  if (inst.row->handler != ptx::Handler::cvt || inst.modifiers.verb != ptx::Verb::none) return {};
  const ptx::Modifiers& mods = inst.modifiers;
  const ptx::Type to = mods.type[0], from = mods.type[1];
  if (!is_floating(from) || integer_type(to).bits == 0) return {};
  // Flushing a subnormal matters only where rounding up or down would reach 1 or -1.
  const bool directed = mods.rounding == Rounding::rmi || mods.rounding == Rounding::rpi;
  OpPair fast;
  if (from == ptx::Type::f32 && !(mods.ftz && directed)) {
    fast = select_fast<float>(to, widths[0], mods.rounding);
  } else if (from == ptx::Type::f64) {
    fast = select_fast<double>(to, widths[0], mods.rounding);
  }
  if (fast.full != nullptr) return fast;
  return convert_pair(convert_any_to_integer, inst, widths);
}

}  // namespace kernwright::sim::KW_SIM_NS
