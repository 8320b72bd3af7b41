// cvt from integers to floating point.
#include "sim/ops/convert/convert_lanes.h"

namespace kernwright::sim::KW_SIM_NS {

OpPair select_convert_from_integer(const ptx::Instruction& inst, const OperandWidths& widths);

namespace {

template <typename I>
struct ToFloat {
  template <typename S>
  float operator()(S x) const {
    return static_cast<float>(static_cast<I>(x));
  }
};
template <typename I>
struct ToDouble {
  template <typename S>
  double operator()(S x) const {
    return static_cast<double>(static_cast<I>(x));
  }
};

template <typename I, typename S>
OpPair nearest(ptx::Type to) {
  return to == ptx::Type::f32 ? unary_pair<ToFloat<I>, float, S>()
                              : unary_pair<ToDouble<I>, double, S>();
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

OpPair select_nearest(ptx::Type from, ptx::Type to, int bytes) {
  using ptx::Type;
  switch (from) {
    case Type::u8: return nearest_from<std::uint8_t>(to, bytes);
    case Type::u16: return nearest_from<std::uint16_t>(to, bytes);
    case Type::u32: return nearest_from<std::uint32_t>(to, bytes);
    case Type::u64: return nearest_from<std::uint64_t>(to, bytes);
    case Type::s8: return nearest_from<std::int8_t>(to, bytes);
    case Type::s16: return nearest_from<std::int16_t>(to, bytes);
    case Type::s32: return nearest_from<std::int32_t>(to, bytes);
    case Type::s64: return nearest_from<std::int64_t>(to, bytes);
    default: return {};
  }
}

std::uint64_t encode_lane(ptx::Type type, bool negative, std::uint64_t magnitude,
                          ptx::Rounding mode) {
  switch (type) {
    case ptx::Type::f16: return numeric::encode_integer<numeric::F16>(negative, magnitude, mode);
    case ptx::Type::bf16: return numeric::encode_integer<numeric::BF16>(negative, magnitude, mode);
    case ptx::Type::f32: return numeric::encode_integer<numeric::F32>(negative, magnitude, mode);
    default: return numeric::encode_integer<numeric::F64>(negative, magnitude, mode);
  }
}

/// 1 in the encoding of `type`: what .sat leaves of every positive integer.
std::uint64_t one_of(ptx::Type type) {
  switch (type) {
    case ptx::Type::f16: return 0x3c00;
    case ptx::Type::bf16: return 0x3f80;
    case ptx::Type::f32: return 0x3f800000;
    default: return 0x3ff0000000000000;
  }
}

/// Every type and rounding, lane by lane; Op::flags is a ConvertFlags.
const Op* convert_any(const Op* op, Warp& warp) {
  const ConvertFlags flags(op->flags);
  for_active<true>(warp, [&](int i) {
    const std::uint64_t raw = load_lane(warp, op->a, flags.source_bytes(), i);
    const std::uint64_t value = extend(raw, flags.source_bits(), flags.source_signed());
    const bool negative = flags.source_signed() && static_cast<std::int64_t>(value) < 0;
    const std::uint64_t magnitude = negative ? 0 - value : value;
    std::uint64_t bits = 0;
    if (!flags.saturates()) {
      bits = encode_lane(flags.result(), negative, magnitude, flags.rounding());
    } else if (!negative && magnitude != 0) {
      bits = one_of(flags.result());
    }
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
    return select_nearest(from, to, widths[1]);
  }
  return {convert_any, convert_any, ConvertFlags::make(inst, widths)};
}

}  // namespace kernwright::sim::KW_SIM_NS
