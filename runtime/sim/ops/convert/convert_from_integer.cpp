// cvt from integers to floating point.
#include "sim/ops/convert/convert_lanes.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

template <typename I, typename S>
OpPair nearest(ptx::Type to) {
  return to == ptx::Type::f32 ? unary_pair<As<I>, float, S>() : unary_pair<As<I>, double, S>();
}

template <typename I>
OpPair nearest_from(ptx::Type to, int bytes) {
  if constexpr (sizeof(I) <= 2) {
    if (bytes == 2) return nearest<I, std::uint16_t>(to);
  }
  if constexpr (sizeof(I) <= 4) {
    if (bytes == 4) return nearest<I, std::uint32_t>(to);
  }
  return bytes == 8 ? nearest<I, std::uint64_t>(to) : OpPair{};
}

/// Every type and rounding, lane by lane; Op::flags is a ConvertFlags.
const Op* convert_any_from_integer(const Op* op, Warp& warp) {
  const ConvertFlags flags = convert_flags(op);
  const IntegerType from = integer_type(flags.source);
  for_active<true>(warp, [&](int i) {
    const std::uint64_t raw = load_lane(warp, op->a, flags.source_bytes(), i);
    const std::uint64_t value = extend(raw, from.bits, from.is_signed);
    bool negative = from.is_signed && static_cast<std::int64_t>(value) < 0;
    std::uint64_t magnitude = negative ? 0 - value : value;
    if (flags.saturates) {
      magnitude = negative || magnitude == 0 ? 0 : 1;
      negative = false;
    }
    const std::uint64_t bits = visit_format(flags.result, [&]<typename Format>() {
      return numeric::encode_integer<Format>(negative, magnitude, flags.rounding);
    });
    store_lane(warp, op->d, flags.result_bytes(), i, bits);
  });
  return op + 1;
}

}  // namespace

OpPair select_convert_from_integer(const ptx::Instruction& inst, const OperandWidths& widths) {
  if (inst.row->handler != ptx::Handler::cvt || inst.modifiers.verb != ptx::Verb::none) return {};
  const ptx::Modifiers& mods = inst.modifiers;
  const ptx::Type to = mods.type[0], from = mods.type[1];
  if (!is_floating(to) || integer_type(from).bits == 0) return {};
  const bool single_or_double = to == ptx::Type::f32 || to == ptx::Type::f64;
  if (single_or_double && mods.rounding == ptx::Rounding::rn && !mods.sat) {
    return visit_integer(integer_type(from),
                         [&]<typename I>() { return nearest_from<I>(to, widths[1]); });
  }
  return convert_pair(convert_any_from_integer, inst, widths);
}

}  // namespace kernwright::sim::KW_SIM_NS
