// Bitwise logic and shifts.
#include "sim/ops/types.h"
#include "sim/ptx/isa.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using And = decltype([](auto a, auto b) { return a & b; });
using Or = decltype([](auto a, auto b) { return a | b; });
using Xor = decltype([](auto a, auto b) { return a ^ b; });
using Not = decltype([]<typename T>(T a) { return static_cast<T>(~a); });
using IsZero = decltype([](auto a) { return a == 0; });

/// Shift counts above the width give 0, or the sign in every bit.
using ShiftLeft = decltype([]<typename T>(T a, std::uint32_t count) {
  const auto shifted = static_cast<Wrapping<T>>(a) << (count & (8 * sizeof(Wrapping<T>) - 1));
  return count < 8 * sizeof(T) ? static_cast<T>(shifted) : T{0};
});
using ShiftRight = decltype([]<typename T>(T a, std::uint32_t count) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(a >> (count < kBits ? count : kBits - 1));
  } else {
    return count < kBits ? static_cast<T>(a >> (count & (kBits - 1))) : T{0};
  }
});

/// shf: the 64-bit value b:a shifted, its upper (left) or lower (right) half. The count is taken
/// modulo 32 (wrap) or limited to 32 (clamp).
template <bool kLeft, bool kWrap>
struct Funnel {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    const std::uint32_t count = kWrap ? c & 31 : (c < 32 ? c : 32);
    const std::uint64_t both = std::uint64_t{b} << 32 | a;
    return kLeft ? static_cast<std::uint32_t>((both << count) >> 32)
                 : static_cast<std::uint32_t>(both >> count);
  }
};

template <bool kMasked, typename F>
const Op* predicate_binary(const Op* op, Warp& warp) {
  write_predicate<kMasked>(warp, op->d, F{}(warp.pred(op->a), warp.pred(op->b)));
  return op + 1;
}
template <bool kMasked, typename F>
const Op* predicate_unary(const Op* op, Warp& warp) {
  write_predicate<kMasked>(warp, op->d, F{}(warp.pred(op->a)));
  return op + 1;
}

/// lop3: bit i of the table is the result for the inputs (a, b, c) = i, with a as the highest.
const Op* lop3(const Op* op, Warp& warp) {
  const std::uint32_t* a = warp.reg<std::uint32_t>(op->a);
  const std::uint32_t* b = warp.reg<std::uint32_t>(op->b);
  const std::uint32_t* c = warp.reg<std::uint32_t>(op->c);
  const std::uint32_t table = *warp.reg<std::uint32_t>(op->e);
  std::uint32_t term[8];
  for (int i = 0; i < 8; ++i) term[i] = ((table >> i) & 1) != 0 ? ~0u : 0u;
  write_lanes<false, std::uint32_t>(warp, op->d, [&](int i) {
    const std::uint32_t x = a[i], y = b[i], z = c[i];
    const std::uint32_t low =
        (~y & ((~z & term[0]) | (z & term[1]))) | (y & ((~z & term[2]) | (z & term[3])));
    const std::uint32_t high =
        (~y & ((~z & term[4]) | (z & term[5]))) | (y & ((~z & term[6]) | (z & term[7])));
    return (~x & low) | (x & high);
  });
  return op + 1;
}

/// lop3 with a predicate besides, for full warps too: q = (d != 0) combined with f. Op::flags: 1 =
/// and, else or.
const Op* lop3_reduce(const Op* op, Warp& warp) {
  const std::uint32_t before = warp.pred(op->f);
  run_and_restore<std::uint32_t>(op, warp, lop3);
  const auto* d = warp.reg<std::uint32_t>(op->d);
  const std::uint32_t nonzero = compare_lanes(d, d, [](auto x, auto) { return x != 0; });
  write_predicate<true>(warp, op->d2, op->flags == 1 ? nonzero & before : nonzero | before);
  return op + 1;
}

/// prmt: each byte of the result is one of the eight bytes of b:a, or its sign in all bits.
[[gnu::always_inline]] inline std::uint32_t permute(std::uint32_t a, std::uint32_t b,
                                                    const std::uint32_t (&selectors)[4]) {
  const std::uint64_t both = std::uint64_t{b} << 32 | a;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    auto byte = static_cast<std::uint32_t>(both >> (8 * (selectors[i] & 7))) & 0xff;
    if ((selectors[i] & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

struct Permute {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    return permute(a, b, {c & 15, (c >> 4) & 15, (c >> 8) & 15, (c >> 12) & 15});
  }
};

/// The modes, lane by lane. Op::flags is the ptx::PrmtMode.
const Op* permute_by_mode(const Op* op, Warp& warp) {
  const auto* a = warp.reg<std::uint32_t>(op->a);
  const auto* b = warp.reg<std::uint32_t>(op->b);
  const auto* c = warp.reg<std::uint32_t>(op->c);
  auto* d = warp.reg<std::uint32_t>(op->d);
  const auto mode = static_cast<ptx::PrmtMode>(op->flags);
  for_active<true>(warp, [=](int i) {
    using ptx::PrmtMode;
    const std::uint32_t s = c[i] & 3, h = 2 * (c[i] & 1);
    std::uint32_t selectors[4] = {h, h + 1, h, h + 1};  // rc16
    for (std::uint32_t k = 0; k < 4; ++k) {
      if (mode == PrmtMode::f4e) selectors[k] = s + k;
      if (mode == PrmtMode::b4e) selectors[k] = (s - k) & 7;
      if (mode == PrmtMode::rc8) selectors[k] = s;
      if (mode == PrmtMode::ecl) selectors[k] = s > k ? s : k;
      if (mode == PrmtMode::ecr) selectors[k] = s < k ? s : k;
    }
    d[i] = permute(a[i], b[i], selectors);
  });
  return op + 1;
}

OpPair select_prmt(ptx::PrmtMode mode) {
  if (mode == ptx::PrmtMode::none) return ternary_pair<Permute, std::uint32_t>();
  return {permute_by_mode, permute_by_mode, static_cast<std::uint32_t>(mode)};
}

template <typename F>
OpPair bitwise(ptx::Type type) {
  if (type == ptx::Type::pred) return {predicate_binary<false, F>, predicate_binary<true, F>};
  return by_width(type, []<typename T>() { return binary_pair<F, T>(); });
}

OpPair select_funnel(const ptx::Modifiers& mods) {
  using W = std::uint32_t;
  if (mods.left) {
    return mods.wrap ? ternary_pair<Funnel<true, true>, W>()
                     : ternary_pair<Funnel<true, false>, W>();
  }
  return mods.wrap ? ternary_pair<Funnel<false, true>, W>()
                   : ternary_pair<Funnel<false, false>, W>();
}

}  // namespace

OpPair select_logic(const ptx::Instruction& inst, const OperandWidths&) {
  using ptx::Handler;
  const ptx::Modifiers& mods = inst.modifiers;
  const ptx::Type type = mods.type[0];
  switch (inst.row->handler) {
    case Handler::and_: return bitwise<And>(type);
    case Handler::or_: return bitwise<Or>(type);
    case Handler::xor_: return bitwise<Xor>(type);
    case Handler::not_:
      if (type == ptx::Type::pred) return {predicate_unary<false, Not>, predicate_unary<true, Not>};
      return by_width(type, []<typename T>() { return unary_pair<Not, T>(); });
    case Handler::cnot: return by_width(type, []<typename T>() { return unary_pair<IsZero, T>(); });
    case Handler::shl:
      return by_width(type,
                      []<typename T>() { return binary_pair<ShiftLeft, T, T, std::uint32_t>(); });
    case Handler::shr:
      return by_integer(
          type, []<typename T>() { return binary_pair<ShiftRight, T, T, std::uint32_t>(); });
    case Handler::lop3:
      if (mods.bool_op != ptx::BoolOp::none) {
        return {lop3_reduce, lop3_reduce, mods.bool_op == ptx::BoolOp::and_ ? 1u : 0u};
      }
      return restored_pair<lop3, std::uint32_t>();
    case Handler::prmt: return select_prmt(mods.prmt);
    case Handler::shf: return select_funnel(mods);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
