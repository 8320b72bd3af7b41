// add, sub, mul, fma, abs and neg of f16 and bf16, rounded once.
#include "sim/exec/ops/half_lanes.h"

namespace kernwright::sim::KW_SIM_NS {

OpPair select_half(const ptx::Instruction& inst, const OperandWidths& widths);

namespace {

enum class After { nothing, saturate, relu };

/// .sat: to [0, 1], NaN gives 0. .relu: negative numbers and -0 give +0, NaN stays.
template <After kAfter, typename T>
[[gnu::always_inline]] inline T finish(T x) {
  if constexpr (kAfter == After::saturate) {
    const T low = x > T{0} ? x : T{0};
    return low < T{1} ? low : T{1};
  }
  if constexpr (kAfter == After::relu) {
    const T clipped = x > T{0} ? x : T{0};
    return x != x ? x : clipped;
  }
  return x;
}

struct Add {
  static float run(float a, float b) { return a + b; }
};
struct Subtract {
  static float run(float a, float b) { return a - b; }
};
struct Multiply {
  static float run(float a, float b) { return a * b; }
};
/// The product is exact in double and the sum rounded to odd: the half gets the only rounding.
struct Fused {
  static double run(float a, float b, float c) {
    return numeric::fused_to_odd(double{a}, double{b}, double{c});
  }
};

template <typename F, typename Format, bool kFlush, After kAfter>
struct Arithmetic {
  template <typename... Halves>
  [[gnu::always_inline]] static Half run(Halves... x) {
    const auto exact = F::run(Format::read(kFlush ? Format::flush(x) : x)...);
    const Half result = Format::write(finish<kAfter>(exact));
    return kFlush ? Format::flush(result) : result;
  }
};

template <typename F, int kInputs, typename Format, bool kFlush>
OpPair by_finish(const ptx::Modifiers& mods) {
  const ptx::Type type = mods.type[0];
  if constexpr (kInputs == 3) {
    if (mods.relu) return half_pair<Arithmetic<F, Format, kFlush, After::relu>, kInputs>(type);
  }
  if constexpr (!Format::kIsBrain) {
    if (mods.sat) return half_pair<Arithmetic<F, Format, kFlush, After::saturate>, kInputs>(type);
  }
  return half_pair<Arithmetic<F, Format, kFlush, After::nothing>, kInputs>(type);
}

template <typename F, int kInputs>
OpPair arithmetic(const ptx::Modifiers& mods) {
  if (is_brain(mods.type[0])) return by_finish<F, kInputs, Brain16, false>(mods);
  return mods.ftz ? by_finish<F, kInputs, Binary16, true>(mods)
                  : by_finish<F, kInputs, Binary16, false>(mods);
}

/// abs and neg work on the sign bit; NaN becomes the one NaN of GPUs.
template <typename Format, bool kNegate, bool kFlush>
struct Sign {
  [[gnu::always_inline]] static Half run(Half x) {
    const Half from = kFlush ? Format::flush(x) : x;
    const auto result = static_cast<Half>(kNegate ? from ^ 0x8000 : from & 0x7fff);
    return (x & 0x7fff) > Format::kInfinity ? kHalfNan : result;
  }
};

template <bool kNegate>
OpPair sign(const ptx::Modifiers& mods) {
  if (is_brain(mods.type[0])) return half_pair<Sign<Brain16, kNegate, false>, 1>(mods.type[0]);
  return mods.ftz ? half_pair<Sign<Binary16, kNegate, true>, 1>(mods.type[0])
                  : half_pair<Sign<Binary16, kNegate, false>, 1>(mods.type[0]);
}

}  // namespace

OpPair select_half(const ptx::Instruction& inst, const OperandWidths&) {
  using ptx::Handler;
  const ptx::Modifiers& mods = inst.modifiers;
  if (!is_half(mods.type[0])) return {};
  switch (inst.row->handler) {
    case Handler::add:
      return arithmetic<Add, 2>(mods);
    case Handler::sub:
      return arithmetic<Subtract, 2>(mods);
    case Handler::mul:
      return arithmetic<Multiply, 2>(mods);
    case Handler::fma:
      return arithmetic<Fused, 3>(mods);
    case Handler::abs:
      return sign<false>(mods);
    case Handler::neg:
      return sign<true>(mods);
    default:
      return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
