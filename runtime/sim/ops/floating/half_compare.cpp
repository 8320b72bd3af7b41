// setp and set of f16 and bf16, scalar and packed.
#include "sim/ops/floating/half_lanes.h"
#include "sim/ops/types.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::BoolOp;
using ptx::Type;

/// The fields of a comparison's Op::flags.
struct Form {
  std::uint32_t holds_for : 4 = 0;
  std::uint32_t bool_op : 3 = 0;
  std::uint32_t flushes : 1 = 0;
  std::uint32_t packed : 1 = 0;
  std::uint32_t is_set : 1 = 0;
  std::uint32_t has_q : 1 = 0;   ///< setp: q is wanted
  std::uint32_t narrow : 1 = 0;  ///< set: the result has 16 bits
  std::uint32_t unused : 4 = 0;
  std::uint32_t on : 16 = 0;  ///< set: what each 16 bits are where the test holds
};

/// Compares 32 halves at a distance of kStride.
template <typename Format, int kStride>
std::uint32_t compare_halves(const Half* a, const Half* b, Form form) {
  alignas(64) float x[kLanes], y[kLanes];
  const bool flushes = form.flushes != 0;
  for (int i = 0; i < kLanes; ++i) {
    const Half p = a[i * kStride], q = b[i * kStride];
    x[i] = Format::read(flushes ? Format::flush(p) : p);
    y[i] = Format::read(flushes ? Format::flush(q) : q);
  }
  const std::uint32_t less = compare_lanes(x, y, [](float p, float q) { return p < q; });
  const std::uint32_t greater = compare_lanes(x, y, [](float p, float q) { return p > q; });
  const std::uint32_t equal = compare_lanes(x, y, [](float p, float q) { return p == q; });
  return ((form.holds_for & 1) != 0 ? less : 0) | ((form.holds_for & 2) != 0 ? equal : 0) |
         ((form.holds_for & 4) != 0 ? greater : 0) |
         ((form.holds_for & 8) != 0 ? ~(less | greater | equal) : 0);
}

/// setp: p = test, q = the opposite; packed, p = test of the lower halves and q of the upper ones.
/// set: d = `on` where the test holds.
template <typename Format>
const Op* compare(const Op* op, Warp& warp) {
  const auto form = std::bit_cast<Form>(op->flags);
  const auto how = static_cast<BoolOp>(form.bool_op);
  const std::uint32_t rhs = how == BoolOp::none ? 0 : warp.pred(op->c);
  const Half* a = warp.reg<Half>(op->a);
  const Half* b = warp.reg<Half>(op->b);
  std::uint32_t low = 0, high = 0;
  if (form.packed != 0) {
    low = compare_halves<Format, 2>(a, b, form);
    high = compare_halves<Format, 2>(a + 1, b + 1, form);
  } else {
    low = compare_halves<Format, 1>(a, b, form);
    high = form.is_set != 0 ? low : ~low;
  }
  low = combine(how, low, rhs);
  high = combine(how, high, rhs);
  const std::uint32_t on = form.on;
  if (form.is_set == 0) {
    write_predicate<true>(warp, op->d, low);
    if (form.has_q != 0) write_predicate<true>(warp, op->d2, high);
  } else if (form.narrow != 0) {
    write_lanes<true, Half>(warp, op->d,
                            [=](int i) { return static_cast<Half>((low >> i & 1) != 0 ? on : 0); });
  } else {
    write_lanes<true, std::uint32_t>(warp, op->d, [=](int i) {
      return ((low >> i & 1) != 0 ? on : 0u) | ((high >> i & 1) != 0 ? on << 16 : 0u);
    });
  }
  return op + 1;
}

}  // namespace

OpPair select_half_compare(const ptx::Instruction& inst, const OperandWidths&) {
  const ptx::Modifiers& mods = inst.modifiers;
  const bool is_set = inst.row->handler == ptx::Handler::set;
  if (!is_set && inst.row->handler != ptx::Handler::setp) return {};
  const Type type = mods.type[is_set ? 1 : 0], to = mods.type[0];
  if (!is_half(type)) return {};
  Form form;
  form.holds_for = holds_for(mods.compare) & 15;
  form.bool_op = static_cast<std::uint32_t>(mods.bool_op) & 7;
  form.flushes = mods.ftz;
  form.packed = is_packed(type);
  form.is_set = is_set;
  form.has_q = form.packed != 0 || inst.operands[0].kind == ptx::OperandKind::reg_pair;
  form.narrow = ptx::bits(to) == 16;
  // 1.0 of a floating type, all ones of an integer.
  form.on = !is_half(to) ? 0xffff : is_brain(to) ? Brain16::kOne : Binary16::kOne;
  const OpFn run = is_brain(type) ? compare<Brain16> : compare<Binary16>;
  return {run, run, std::bit_cast<std::uint32_t>(form)};
}

}  // namespace kernwright::sim::KW_SIM_NS
