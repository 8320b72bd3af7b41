// ex2.approx and tanh.approx of f16 and bf16: the true value rounded to the half.
#include "sim/ops/floating/half_lanes.h"

#include <cmath>

namespace kernwright::sim::KW_SIM_NS {
namespace {

using Exponential = decltype([](double x) { return std::exp2(x); });
using Tangent = decltype([](double x) { return std::tanh(x); });

template <typename Format, typename F>
const Op* function(const Op* op, Warp& warp) {
  const Half* a = warp.reg<Half>(op->a);
  Half* d = warp.reg<Half>(op->d);
  const bool flushes = (op->flags & kHalfFlushes) != 0;
  const int halves = static_cast<int>(op->flags & kHalfCount) / kLanes;
  for_active<true>(warp, [=](int lane) {
    for (int i = lane * halves; i < (lane + 1) * halves; ++i) {
      const Half result = Format::write(F{}(double{Format::read(a[i])}));
      d[i] = flushes ? Format::flush(result) : result;
    }
  });
  return op + 1;
}

template <typename F>
OpPair by_format(const ptx::Modifiers& mods) {
  const OpFn run = is_brain(mods.type[0]) ? function<Brain16, F> : function<Binary16, F>;
  return {run, run, half_flags(mods)};
}

}  // namespace

OpPair select_half_function(const ptx::Instruction& inst, const OperandWidths&) {
  if (!is_half(inst.modifiers.type[0])) return {};
  if (inst.row->handler == ptx::Handler::ex2) return by_format<Exponential>(inst.modifiers);
  if (inst.row->handler == ptx::Handler::tanh) return by_format<Tangent>(inst.modifiers);
  return {};
}

}  // namespace kernwright::sim::KW_SIM_NS
