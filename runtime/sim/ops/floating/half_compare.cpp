// setp and set of f16 and bf16, scalar and packed.
#include "sim/ops/floating/half_lanes.h"
#include "sim/ops/types.h"

namespace kernwright::sim::KW_SIM_NS {

OpPair select_half_compare(const ptx::Instruction& inst, const OperandWidths& widths);

namespace {

using ptx::BoolOp;
using ptx::Compare;

/// Op::flags: the comparison, the BoolOp, and what is needed to write the result.
struct Flags {
  static constexpr std::uint32_t kQ = 1u << 9;  ///< setp of scalars: q is wanted
  static std::uint32_t make(const ptx::Instruction& inst) {
    const ptx::Modifiers& mods = inst.modifiers;
    const bool pair = inst.operands[0].kind == ptx::OperandKind::reg_pair;
    return static_cast<std::uint32_t>(mods.compare) |
           static_cast<std::uint32_t>(mods.bool_op) << 5 | (mods.ftz ? 256u : 0u) |
           (pair ? kQ : 0u) | static_cast<std::uint32_t>(mods.type[0]) << 10;
  }
  explicit Flags(std::uint32_t bits) : bits_(bits) {}
  Compare compare() const { return static_cast<Compare>(bits_ & 31); }
  BoolOp bool_op() const { return static_cast<BoolOp>(bits_ >> 5 & 7); }
  bool flushes() const { return (bits_ & 256) != 0; }
  bool wants_q() const { return (bits_ & kQ) != 0; }
  ptx::Type result() const { return static_cast<ptx::Type>(bits_ >> 10 & 63); }

 private:
  std::uint32_t bits_;
};

/// Bits of the lanes with a < b, a > b and a == b; where none holds, one of them is NaN.
struct Order {
  std::uint32_t less = 0, greater = 0, equal = 0;

  std::uint32_t test(Compare compare) const {
    const std::uint32_t unordered = ~(less | greater | equal);
    switch (compare) {
      case Compare::eq: return equal;
      case Compare::ne: return less | greater;
      case Compare::lt: return less;
      case Compare::le: return less | equal;
      case Compare::gt: return greater;
      case Compare::ge: return greater | equal;
      case Compare::equ: return equal | unordered;
      case Compare::neu: return ~equal;
      case Compare::ltu: return less | unordered;
      case Compare::leu: return less | equal | unordered;
      case Compare::gtu: return greater | unordered;
      case Compare::geu: return greater | equal | unordered;
      case Compare::num: return ~unordered;
      case Compare::nan: return unordered;
      default: return 0;
    }
  }
};

/// Compares 32 halves that stand kStride apart.
template <typename Format, int kStride>
std::uint32_t compare_halves(const Half* a, const Half* b, const Flags& flags) {
  alignas(64) float x[kLanes], y[kLanes];
  const bool flushes = flags.flushes();
  for (int i = 0; i < kLanes; ++i) {
    const Half p = a[i * kStride], q = b[i * kStride];
    x[i] = Format::read(flushes ? Format::flush(p) : p);
    y[i] = Format::read(flushes ? Format::flush(q) : q);
  }
  Order order;
  order.less = compare_lanes(x, y, [](float p, float q) { return p < q; });
  order.greater = compare_lanes(x, y, [](float p, float q) { return p > q; });
  order.equal = compare_lanes(x, y, [](float p, float q) { return p == q; });
  return order.test(flags.compare());
}

/// p = test; q = the opposite.
template <typename Format>
const Op* setp_scalar(const Op* op, Warp& warp) {
  const Flags flags(op->flags);
  const std::uint32_t with = flags.bool_op() == BoolOp::none ? 0 : warp.pred(op->c);
  const std::uint32_t bits =
      compare_halves<Format, 1>(warp.reg<Half>(op->a), warp.reg<Half>(op->b), flags);
  write_predicate<true>(warp, op->d, combine(flags.bool_op(), bits, with));
  if (flags.wants_q()) {
    write_predicate<true>(warp, op->d2, combine(flags.bool_op(), ~bits, with));
  }
  return op + 1;
}

/// p = test of the lower halves; q = test of the upper ones.
template <typename Format>
const Op* setp_packed(const Op* op, Warp& warp) {
  const Flags flags(op->flags);
  const std::uint32_t with = flags.bool_op() == BoolOp::none ? 0 : warp.pred(op->c);
  const Half* a = warp.reg<Half>(op->a);
  const Half* b = warp.reg<Half>(op->b);
  const std::uint32_t low = compare_halves<Format, 2>(a, b, flags);
  const std::uint32_t high = compare_halves<Format, 2>(a + 1, b + 1, flags);
  write_predicate<true>(warp, op->d, combine(flags.bool_op(), low, with));
  write_predicate<true>(warp, op->d2, combine(flags.bool_op(), high, with));
  return op + 1;
}

/// What `set` writes where the test holds: 1.0 of a floating type, all ones of an integer.
std::uint32_t true_value(ptx::Type type) {
  using ptx::Type;
  switch (type) {
    case Type::f16:
    case Type::f16x2: return Binary16::kOne;
    case Type::bf16:
    case Type::bf16x2: return Brain16::kOne;
    case Type::u16:
    case Type::s16: return 0xffff;
    default: return 0xffffffff;
  }
}

template <typename Format>
const Op* set_scalar(const Op* op, Warp& warp) {
  const Flags flags(op->flags);
  const std::uint32_t with = flags.bool_op() == BoolOp::none ? 0 : warp.pred(op->c);
  const std::uint32_t bits =
      combine(flags.bool_op(),
              compare_halves<Format, 1>(warp.reg<Half>(op->a), warp.reg<Half>(op->b), flags), with);
  const std::uint32_t on = true_value(flags.result());
  if (ptx::bits(flags.result()) == 16) {
    write_lanes<true, Half>(
        warp, op->d, [=](int i) { return static_cast<Half>((bits >> i & 1) != 0 ? on : 0); });
  } else {
    write_lanes<true, std::uint32_t>(warp, op->d,
                                     [=](int i) { return (bits >> i & 1) != 0 ? on : 0u; });
  }
  return op + 1;
}

template <typename Format>
const Op* set_packed(const Op* op, Warp& warp) {
  const Flags flags(op->flags);
  const std::uint32_t with = flags.bool_op() == BoolOp::none ? 0 : warp.pred(op->c);
  const Half* a = warp.reg<Half>(op->a);
  const Half* b = warp.reg<Half>(op->b);
  const std::uint32_t low = combine(flags.bool_op(), compare_halves<Format, 2>(a, b, flags), with);
  const std::uint32_t high =
      combine(flags.bool_op(), compare_halves<Format, 2>(a + 1, b + 1, flags), with);
  const std::uint32_t on = true_value(flags.result()) & 0xffff;
  write_lanes<true, std::uint32_t>(warp, op->d, [=](int i) {
    return ((low >> i & 1) != 0 ? on : 0u) | ((high >> i & 1) != 0 ? on << 16 : 0u);
  });
  return op + 1;
}

template <typename Format>
OpPair make(const ptx::Instruction& inst, bool packed) {
  const std::uint32_t flags = Flags::make(inst);
  if (inst.row->handler == ptx::Handler::setp) {
    if (packed) return {setp_packed<Format>, setp_packed<Format>, flags};
    return {setp_scalar<Format>, setp_scalar<Format>, flags};
  }
  if (packed) return {set_packed<Format>, set_packed<Format>, flags};
  return {set_scalar<Format>, set_scalar<Format>, flags};
}

}  // namespace

OpPair select_half_compare(const ptx::Instruction& inst, const OperandWidths&) {
  const bool is_set = inst.row->handler == ptx::Handler::set;
  if (!is_set && inst.row->handler != ptx::Handler::setp) return {};
  const ptx::Type type = inst.modifiers.type[is_set ? 1 : 0];
  if (!is_half(type)) return {};
  return is_brain(type) ? make<Brain16>(inst, is_packed(type))
                        : make<Binary16>(inst, is_packed(type));
}

}  // namespace kernwright::sim::KW_SIM_NS
