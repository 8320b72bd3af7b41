// ex2.approx and tanh.approx of f16 and bf16: the true value rounded to the half.
#include "sim/ops/floating/half_lanes.h"

#include <cmath>

namespace kernwright::sim::KW_SIM_NS {

OpPair select_half_function(const ptx::Instruction& inst, const OperandWidths& widths);

namespace {

struct Exponential {
  static double run(double x) { return std::exp2(x); }
};
struct Tangent {
  static double run(double x) { return std::tanh(x); }
};

/// Op::flags: 1 = subnormal results become zero.
template <typename Format, int kHalves, typename F>
const Op* function(const Op* op, Warp& warp) {
  const Half* a = warp.reg<Half>(op->a);
  Half* d = warp.reg<Half>(op->d);
  const bool flushes = op->flags != 0;
  for_active<true>(warp, [=](int lane) {
    for (int i = lane * kHalves; i < (lane + 1) * kHalves; ++i) {
      const Half result = Format::write(F::run(double{Format::read(a[i])}));
      d[i] = flushes ? Format::flush(result) : result;
    }
  });
  return op + 1;
}

template <typename Format, typename F>
OpPair make(const ptx::Modifiers& mods) {
  const std::uint32_t flags = mods.ftz ? 1 : 0;
  if (is_packed(mods.type[0])) {
    return {function<Format, 2, F>, function<Format, 2, F>, flags};
  }
  return {function<Format, 1, F>, function<Format, 1, F>, flags};
}

template <typename F>
OpPair by_format(const ptx::Modifiers& mods) {
  return is_brain(mods.type[0]) ? make<Brain16, F>(mods) : make<Binary16, F>(mods);
}

}  // namespace

OpPair select_half_function(const ptx::Instruction& inst, const OperandWidths&) {
  if (!is_half(inst.modifiers.type[0])) return {};
  if (inst.row->handler == ptx::Handler::ex2) return by_format<Exponential>(inst.modifiers);
  if (inst.row->handler == ptx::Handler::tanh) return by_format<Tangent>(inst.modifiers);
  return {};
}

}  // namespace kernwright::sim::KW_SIM_NS
