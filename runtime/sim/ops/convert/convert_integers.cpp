// cvt between integer types, cvt.pack.
#include "sim/ops/convert/convert_lanes.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

/// The low `bits` of a register, extended to the destination.
template <typename D, typename S>
OpPair select_extend(int bits, bool is_signed) {
  constexpr std::size_t kBoth = std::min(sizeof(D), sizeof(S));
  const auto from = [&]<std::size_t kBytes>() {
    return is_signed ? unary_pair<As<SizedInteger<kBytes, true>>, D, S>()
                     : unary_pair<As<SizedInteger<kBytes>>, D, S>();
  };
  if (bits >= static_cast<int>(8 * kBoth)) {
    is_signed = is_signed && sizeof(D) > sizeof(S);
    return from.template operator()<kBoth>();
  }
  if (bits == 8) return from.template operator()<1>();
  if constexpr (kBoth > 2) {
    if (bits == 16) return from.template operator()<2>();
  }
  if constexpr (kBoth > 4) {
    if (bits == 32) return from.template operator()<4>();
  }
  return {};
}

template <typename D>
OpPair select_source(int source_bytes, int bits, bool is_signed) {
  switch (source_bytes) {
    case 2: return select_extend<D, std::uint16_t>(bits, is_signed);
    case 4: return select_extend<D, std::uint32_t>(bits, is_signed);
    case 8: return select_extend<D, std::uint64_t>(bits, is_signed);
    default: return {};
  }
}

/// `value` of an integer type clamped to another, as the bits of a 64-bit register.
std::uint64_t saturate_integer(std::uint64_t value, bool from_signed, int to_bits, bool to_signed) {
  const std::uint64_t top = ~std::uint64_t{0} >> (64 - to_bits + (to_signed ? 1 : 0));
  const auto as_signed = static_cast<std::int64_t>(value);
  if (from_signed && as_signed < 0) {
    if (!to_signed) return 0;
    const std::int64_t low = -static_cast<std::int64_t>(top) - 1;
    return static_cast<std::uint64_t>(as_signed < low ? low : as_signed);
  }
  return value > top ? top : value;
}

/// Every pair of types and widths, lane by lane; Op::flags is a ConvertFlags.
const Op* convert_any_integers(const Op* op, Warp& warp) {
  const ConvertFlags flags = convert_flags(op);
  const IntegerType from = integer_type(flags.source), to = integer_type(flags.result);
  for_active<true>(warp, [&](int i) {
    const std::uint64_t raw = load_lane(warp, op->a, flags.source_bytes(), i);
    std::uint64_t value = extend(raw, from.bits, from.is_signed);
    if (flags.saturates) value = saturate_integer(value, from.is_signed, to.bits, to.is_signed);
    value = extend(value, to.bits, to.is_signed);
    store_lane(warp, op->d, flags.result_bytes(), i, value);
  });
  return op + 1;
}

/// Op::flags: bits of one part, bit 8 = parts are signed, bit 9 = a third operand moves up.
const Op* pack(const Op* op, Warp& warp) {
  const int bits = static_cast<int>(op->flags & 0xff);
  const bool is_signed = (op->flags >> 8 & 1) != 0;
  const bool chained = (op->flags >> 9 & 1) != 0;
  const auto* a = warp.reg<std::int32_t>(op->a);
  const auto* b = warp.reg<std::int32_t>(op->b);
  const auto* c = chained ? warp.reg<std::uint32_t>(op->c) : nullptr;
  const std::uint32_t mask = (1u << bits) - 1;
  const auto part = [=](std::int32_t x) {
    const auto wide = static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
    return static_cast<std::uint32_t>(saturate_integer(wide, true, bits, is_signed)) & mask;
  };
  auto* d = warp.reg<std::uint32_t>(op->d);
  for_active<true>(warp, [=](int i) {
    const std::uint32_t pair = part(a[i]) << bits | part(b[i]);
    d[i] = chained ? c[i] << (2 * bits) | pair : pair;
  });
  return op + 1;
}

}  // namespace

OpPair select_convert_integers(const ptx::Instruction& inst, const OperandWidths& widths) {
  if (inst.row->handler != ptx::Handler::cvt) return {};
  const ptx::Modifiers& mods = inst.modifiers;
  const IntegerType to = integer_type(mods.type[0]);
  const IntegerType from = integer_type(mods.type[1]);
  if (mods.verb == ptx::Verb::pack) {
    const bool chained = inst.operands.size() == 4;
    const std::uint32_t flags =
        static_cast<std::uint32_t>(to.bits) | (to.is_signed ? 256u : 0u) | (chained ? 512u : 0u);
    return {pack, pack, flags};
  }
  if (to.bits == 0 || from.bits == 0) return {};
  const bool twice =
      to.bits > from.bits && widths[0] * 8 > to.bits && from.is_signed && !to.is_signed;
  if (mods.sat || twice) return convert_pair(convert_any_integers, inst, widths);
  const IntegerType& part = to.bits <= from.bits ? to : from;
  switch (widths[0]) {
    case 2: return select_source<std::uint16_t>(widths[1], part.bits, part.is_signed);
    case 4: return select_source<std::uint32_t>(widths[1], part.bits, part.is_signed);
    case 8: return select_source<std::uint64_t>(widths[1], part.bits, part.is_signed);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
