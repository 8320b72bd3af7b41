// cvt between integer types, cvt.pack.
#include "sim/ops/convert/convert_lanes.h"

#include <limits>

namespace kernwright::sim::KW_SIM_NS {

OpPair select_convert_integers(const ptx::Instruction& inst, const OperandWidths& widths);

namespace {

template <int kBits, bool kSigned>
using Part = std::conditional_t<
    kBits == 8, std::conditional_t<kSigned, std::int8_t, std::uint8_t>,
    std::conditional_t<
        kBits == 16, std::conditional_t<kSigned, std::int16_t, std::uint16_t>,
        std::conditional_t<kBits == 32, std::conditional_t<kSigned, std::int32_t, std::uint32_t>,
                           std::conditional_t<kSigned, std::int64_t, std::uint64_t>>>>;

/// The low kBits of a register, extended to the destination.
template <int kBits, bool kSigned>
struct Extend {
  template <typename S>
  auto operator()(S x) const {
    return static_cast<Part<kBits, kSigned>>(x);
  }
};

template <typename D, typename S>
OpPair select_extend(int bits, bool is_signed) {
  constexpr int kBoth = static_cast<int>(std::min(sizeof(D), sizeof(S)) * 8);
  if (bits >= kBoth) {
    return is_signed && sizeof(D) > sizeof(S) ? unary_pair<Extend<kBoth, true>, D, S>()
                                              : unary_pair<Extend<kBoth, false>, D, S>();
  }
  if (bits == 8) {
    return is_signed ? unary_pair<Extend<8, true>, D, S>() : unary_pair<Extend<8, false>, D, S>();
  }
  if constexpr (kBoth > 16) {
    if (bits == 16) {
      return is_signed ? unary_pair<Extend<16, true>, D, S>()
                       : unary_pair<Extend<16, false>, D, S>();
    }
  }
  if constexpr (kBoth > 32) {
    if (bits == 32) {
      return is_signed ? unary_pair<Extend<32, true>, D, S>()
                       : unary_pair<Extend<32, false>, D, S>();
    }
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
std::uint64_t saturate(std::uint64_t value, bool from_signed, int to_bits, bool to_signed) {
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
const Op* convert_any(const Op* op, Warp& warp) {
  const ConvertFlags flags(op->flags);
  for_active<true>(warp, [&](int i) {
    const std::uint64_t raw = load_lane(warp, op->a, flags.source_bytes(), i);
    std::uint64_t value = extend(raw, flags.source_bits(), flags.source_signed());
    if (flags.saturates()) {
      value = saturate(value, flags.source_signed(), flags.result_bits(), flags.result_signed());
    }
    value = extend(value, flags.result_bits(), flags.result_signed());
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
    return static_cast<std::uint32_t>(saturate(wide, true, bits, is_signed)) & mask;
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
  const int wide = widths[0] * 8;
  const bool twice = to.bits > from.bits && wide > to.bits && from.is_signed && !to.is_signed;
  if (mods.sat || twice) {
    return {convert_any, convert_any, ConvertFlags::make(inst, widths)};
  }
  const bool narrows = to.bits <= from.bits;
  const int bits = narrows ? to.bits : from.bits;
  const bool is_signed = narrows ? to.is_signed : from.is_signed;
  switch (widths[0]) {
    case 2: return select_source<std::uint16_t>(widths[1], bits, is_signed);
    case 4: return select_source<std::uint32_t>(widths[1], bits, is_signed);
    case 8: return select_source<std::uint64_t>(widths[1], bits, is_signed);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
