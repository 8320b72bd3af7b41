// setp, set, selp, slct.
#include "sim/exec/ops/types.h"
#include "sim/ptx/isa.h"

#include <cmath>

namespace kernwright::sim::KW_SIM_NS {

OpPair select_compare(const ptx::Instruction& inst, const OperandWidths& widths);

namespace {

using ptx::BoolOp;
using ptx::Compare;

/// Subnormals count as zero of the same sign.
struct Flushed {
  float operator()(float x) const {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : x;
  }
};
struct Kept {
  template <typename T>
  T operator()(T x) const {
    return x;
  }
};

/// Comparisons are ordered (false with NaN) or, in the ...u forms, true with NaN.
template <Compare kCompare>
struct Test {
  template <typename T>
  bool operator()(T a, T b) const {
    switch (kCompare) {
      case Compare::eq:
        return a == b;
      case Compare::ne:
        return a < b || b < a;
      case Compare::lt:
      case Compare::lo:
        return a < b;
      case Compare::le:
      case Compare::ls:
        return a <= b;
      case Compare::gt:
      case Compare::hi:
        return a > b;
      case Compare::ge:
      case Compare::hs:
        return a >= b;
      case Compare::equ:
        return !(a < b || b < a);
      case Compare::neu:
        return a != b;
      case Compare::ltu:
        return !(a >= b);
      case Compare::leu:
        return !(a > b);
      case Compare::gtu:
        return !(a <= b);
      case Compare::geu:
        return !(a < b);
      case Compare::num:
        return a == a && b == b;
      case Compare::nan:
        return a != a || b != b;
      default:
        return false;
    }
  }
};

template <Compare kCompare, typename T, typename Prepare>
[[gnu::always_inline]] inline std::uint32_t test_lanes(const Op* op, Warp& warp) {
  return compare_lanes(warp.reg<T>(op->a), warp.reg<T>(op->b),
                       [](T a, T b) { return Test<kCompare>{}(Prepare{}(a), Prepare{}(b)); });
}

/// One copy of the loop for the rarer handlers.
template <Compare kCompare, typename T, typename Prepare>
[[gnu::noinline]] std::uint32_t call_test_lanes(const Op* op, Warp& warp) {
  return test_lanes<kCompare, T, Prepare>(op, warp);
}

/// Which loop the rarer handlers call.
using TestLanes = std::uint32_t (*)(const Op* op, Warp& warp);

std::uint32_t combine(BoolOp how, std::uint32_t bits, std::uint32_t with) {
  switch (how) {
    case BoolOp::and_:
      return bits & with;
    case BoolOp::or_:
      return bits | with;
    case BoolOp::xor_:
      return bits ^ with;
    default:
      return bits;
  }
}

/// p = test; q, where wanted, the opposite.
template <bool kMasked, Compare kCompare, typename T, typename Prepare>
const Op* setp(const Op* op, Warp& warp) {
  write_predicate<kMasked>(warp, op->d, test_lanes<kCompare, T, Prepare>(op, warp));
  return op + 1;
}

/// p = test BOOL c, q = !test BOOL c. Op::flags: 1 = q is wanted, above it the BoolOp.
template <bool kMasked, TestLanes kTest>
const Op* setp_both(const Op* op, Warp& warp) {
  const std::uint32_t bits = kTest(op, warp);
  const auto how = static_cast<BoolOp>(op->flags >> 1);
  const std::uint32_t with = how == BoolOp::none ? 0 : warp.pred(op->c);
  write_predicate<kMasked>(warp, op->d, combine(how, bits, with));
  if ((op->flags & 1) != 0) write_predicate<kMasked>(warp, op->d2, combine(how, ~bits, with));
  return op + 1;
}

/// d = all ones or 1.0f where the test holds, else 0. Op::flags: 1 = float, above it the BoolOp.
template <bool kMasked, TestLanes kTest>
const Op* set(const Op* op, Warp& warp) {
  const auto how = static_cast<BoolOp>(op->flags >> 1);
  const std::uint32_t with = how == BoolOp::none ? 0 : warp.pred(op->c);
  const std::uint32_t bits = combine(how, kTest(op, warp), with);
  const std::uint32_t on = (op->flags & 1) != 0 ? 0x3f800000u : ~0u;
  write_lanes<kMasked, std::uint32_t>(warp, op->d,
                                      [=](int i) { return ((bits >> i) & 1) != 0 ? on : 0u; });
  return op + 1;
}

template <Compare kCompare, typename T, typename Prepare>
OpPair make_compare(const ptx::Instruction& inst) {
  constexpr TestLanes kTest = call_test_lanes<kCompare, T, Prepare>;
  const auto how = static_cast<std::uint32_t>(inst.modifiers.bool_op) << 1;
  if (inst.row->handler == ptx::Handler::set) {
    const bool to_float = inst.modifiers.type[0] == ptx::Type::f32;
    return {set<kFull, kTest>, set<true, kTest>, how | (to_float ? 1u : 0u)};
  }
  const bool pair = inst.operands[0].kind == ptx::OperandKind::reg_pair;
  if (!pair && how == 0)
    return {setp<kFull, kCompare, T, Prepare>, setp<true, kCompare, T, Prepare>};
  return {setp_both<kFull, kTest>, setp_both<true, kTest>, how | (pair ? 1u : 0u)};
}

template <typename T, typename Prepare = Kept>
OpPair compare_integers(const ptx::Instruction& inst) {
  switch (inst.modifiers.compare) {
    case Compare::eq:
      return make_compare<Compare::eq, T, Prepare>(inst);
    case Compare::ne:
      return make_compare<Compare::neu, T, Prepare>(inst);
    case Compare::lt:
    case Compare::lo:
      return make_compare<Compare::lt, T, Prepare>(inst);
    case Compare::le:
    case Compare::ls:
      return make_compare<Compare::le, T, Prepare>(inst);
    case Compare::gt:
    case Compare::hi:
      return make_compare<Compare::gt, T, Prepare>(inst);
    case Compare::ge:
    case Compare::hs:
      return make_compare<Compare::ge, T, Prepare>(inst);
    default:
      return {};
  }
}

template <typename T, typename Prepare>
OpPair compare_floats(const ptx::Instruction& inst) {
  switch (inst.modifiers.compare) {
    case Compare::ne:
      return make_compare<Compare::ne, T, Prepare>(inst);
    case Compare::equ:
      return make_compare<Compare::equ, T, Prepare>(inst);
    case Compare::neu:
      return make_compare<Compare::neu, T, Prepare>(inst);
    case Compare::ltu:
      return make_compare<Compare::ltu, T, Prepare>(inst);
    case Compare::leu:
      return make_compare<Compare::leu, T, Prepare>(inst);
    case Compare::gtu:
      return make_compare<Compare::gtu, T, Prepare>(inst);
    case Compare::geu:
      return make_compare<Compare::geu, T, Prepare>(inst);
    case Compare::num:
      return make_compare<Compare::num, T, Prepare>(inst);
    case Compare::nan:
      return make_compare<Compare::nan, T, Prepare>(inst);
    default:
      return compare_integers<T, Prepare>(inst);
  }
}

OpPair select_test(const ptx::Instruction& inst, ptx::Type type) {
  if (type == ptx::Type::f64) return compare_floats<double, Kept>(inst);
  if (type == ptx::Type::f32) {
    return inst.modifiers.ftz ? compare_floats<float, Flushed>(inst)
                              : compare_floats<float, Kept>(inst);
  }
  return by_integer(type, [&]<typename T>() { return compare_integers<T>(inst); });
}

template <bool kMasked, typename T>
const Op* selp(const Op* op, Warp& warp) {
  const T* a = warp.reg<T>(op->a);
  const T* b = warp.reg<T>(op->b);
  T* d = warp.reg<T>(op->d);
  if constexpr (!kMasked) {
    blend_lanes(d, warp.pred(op->c), a, b);
  } else {
    alignas(64) T chosen[kLanes];
    blend_lanes(chosen, warp.pred(op->c), a, b);
    blend_lanes(d, warp.mask, chosen, d);
  }
  return op + 1;
}

/// d = c >= 0 ? a : b; -0 counts as >= 0, NaN does not.
template <typename Prepare>
struct SelectBySign {
  template <typename T, typename C>
  T operator()(T a, T b, C c) const {
    return Prepare{}(c) >= C{0} ? a : b;
  }
};

OpPair select_slct(const ptx::Modifiers& mods) {
  return by_width(mods.type[0], [&]<typename T>() {
    if (mods.type[1] == ptx::Type::s32) {
      return ternary_pair<SelectBySign<Kept>, T, T, T, std::int32_t>();
    }
    return mods.ftz ? ternary_pair<SelectBySign<Flushed>, T, T, T, float>()
                    : ternary_pair<SelectBySign<Kept>, T, T, T, float>();
  });
}

}  // namespace

OpPair select_compare(const ptx::Instruction& inst, const OperandWidths&) {
  using ptx::Handler;
  const ptx::Modifiers& mods = inst.modifiers;
  switch (inst.row->handler) {
    case Handler::setp:
      return select_test(inst, mods.type[0]);
    case Handler::set: {
      const bool is_word = ptx::bits(mods.type[0]) == 32 && mods.type[0] != ptx::Type::f16x2 &&
                           mods.type[0] != ptx::Type::bf16x2;
      return is_word ? select_test(inst, mods.type[1]) : OpPair{};
    }
    case Handler::selp:
      return by_width(mods.type[0], []<typename T>() {
        return OpPair{selp<kFull, T>, selp<true, T>};
      });
    case Handler::slct:
      return select_slct(mods);
    default:
      return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
