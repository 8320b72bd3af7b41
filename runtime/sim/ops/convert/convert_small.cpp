// cvt to tf32 and 8-bit floats, and between f32 and packed pairs.
#include "sim/ops/convert/convert_lanes.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Rounding;
using ptx::Type;

// ---- f16x2 and bf16x2 from two floats: a goes up, b down

template <bool kBrain>
struct PackNearest {
  static std::uint32_t half(float x) {
    return kBrain ? numeric::f32_to_bf16(x) : numeric::f32_to_f16(x);
  }
  std::uint32_t operator()(float a, float b) const { return half(a) << 16 | half(b); }
};

/// Any packed pair from two floats; Op::flags is a ConvertFlags.
const Op* pack_pair(const Op* op, Warp& warp) {
  const ConvertFlags flags = convert_flags(op);
  const int bits = ptx::bits(flags.result) / 2;
  const auto* a = warp.reg<float>(op->a);
  const auto* b = warp.reg<float>(op->b);
  for_active<true>(warp, [&](int i) {
    const auto element = [&](float x) {
      return encode_floating(x, flags.result, flags.rounding, flags.finish());
    };
    store_lane(warp, op->d, bits / 4, i, element(a[i]) << bits | element(b[i]));
  });
  return op + 1;
}

/// e4m3x2 and e5m2x2 from f16x2.
const Op* narrow_pair(const Op* op, Warp& warp) {
  const ConvertFlags flags = convert_flags(op);
  const auto* a = warp.reg<std::uint32_t>(op->a);
  for_active<true>(warp, [&](int i) {
    const auto element = [&](std::uint32_t half) {
      const double x = numeric::f16_to_f32(static_cast<std::uint16_t>(half));
      return encode_floating(x, flags.result, flags.rounding, flags.finish());
    };
    store_lane(warp, op->d, 2, i, element(a[i] >> 16) << 8 | element(a[i] & 0xffff));
  });
  return op + 1;
}

/// f16x2 from e4m3x2 and e5m2x2.
const Op* widen_pair(const Op* op, Warp& warp) {
  const ConvertFlags flags = convert_flags(op);
  const auto* a = warp.reg<std::uint16_t>(op->a);
  for_active<true>(warp, [&](int i) {
    const auto element = [&](unsigned byte) {
      const double x = flags.source == Type::e4m3x2 ? numeric::decode<numeric::E4M3>(byte)
                                                    : numeric::decode<numeric::E5M2>(byte);
      return numeric::encode<numeric::F16>(x, Rounding::rn, flags.finish());
    };
    store_lane(warp, op->d, 4, i, element(a[i] >> 8) << 16 | element(a[i] & 0xff));
  });
  return op + 1;
}

// ---- tf32

using ToTf32 = decltype([](float x) { return numeric::f32_to_tf32(x); });

/// A value that reaches infinity steps back by one unit, a NaN too: as on an H200.
using ToFiniteTf32 = decltype([](float x) {
  const std::uint32_t rounded = numeric::f32_to_tf32(x);
  return (rounded & 0x7fffffffu) >= 0x7f800000u ? rounded - 0x2000u : rounded;
});

const Op* tf32_any(const Op* op, Warp& warp) {
  const ConvertFlags flags = convert_flags(op);
  const auto* a = warp.reg<float>(op->a);
  for_active<true>(warp, [&](int i) {
    store_lane(warp, op->d, 4, i,
               encode_floating(a[i], Type::tf32, flags.rounding, flags.finish()));
  });
  return op + 1;
}

}  // namespace

OpPair select_convert_small(const ptx::Instruction& inst, const OperandWidths& widths) {
  if (inst.row->handler != ptx::Handler::cvt || inst.modifiers.verb != ptx::Verb::none) return {};
  const ptx::Modifiers& mods = inst.modifiers;
  const bool plain = !mods.relu && !mods.satfinite;
  const bool nearest = plain && mods.rounding == Rounding::rn;
  const bool from_pair = mods.type[1] == Type::f16x2;
  switch (mods.type[0]) {
    case Type::tf32:
      if (plain && mods.rounding == Rounding::rna)
        return unary_pair<ToTf32, std::uint32_t, float>();
      if (mods.rounding == Rounding::rna) return unary_pair<ToFiniteTf32, std::uint32_t, float>();
      return convert_pair(tf32_any, inst, widths);
    case Type::f16x2:
      if (mods.type[1] != Type::f32) return convert_pair(widen_pair, inst, widths);
      if (nearest) return binary_pair<PackNearest<false>, std::uint32_t, float>();
      return convert_pair(pack_pair, inst, widths);
    case Type::bf16x2:
      if (nearest) return binary_pair<PackNearest<true>, std::uint32_t, float>();
      return convert_pair(pack_pair, inst, widths);
    case Type::e4m3x2:
    case Type::e5m2x2:
      if (from_pair) return convert_pair(narrow_pair, inst, widths);
      return convert_pair(pack_pair, inst, widths);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
