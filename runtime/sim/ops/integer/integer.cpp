// Vectorised integer arithmetic: add, sub, mul.lo, mad.lo, min, max, abs, neg.
#include "sim/ops/types.h"
#include "sim/ptx/isa.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using AddInteger = decltype([]<typename T>(T a, T b) { return Wrapping<T>{a} + b; });
using SubtractInteger = decltype([]<typename T>(T a, T b) { return Wrapping<T>{a} - b; });
using MultiplyInteger = decltype([]<typename T>(T a, T b) { return Wrapping<T>{a} * b; });
using MultiplyAdd = decltype([]<typename T>(T a, T b, T c) { return Wrapping<T>{a} * b + c; });
using Minimum = decltype([](auto a, auto b) { return b < a ? b : a; });
using Maximum = decltype([](auto a, auto b) { return a < b ? b : a; });
using NegateInteger = decltype([]<typename T>(T a) {
  return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
});
using AbsoluteInteger = decltype([](auto a) { return a < 0 ? NegateInteger{}(a) : a; });
using AddSaturate = decltype([](std::int32_t a, std::int32_t b) {
  return saturate(std::int64_t{a} + b);
});
using SubtractSaturate = decltype([](std::int32_t a, std::int32_t b) {
  return saturate(std::int64_t{a} - b);
});

template <typename F>
OpPair wrapping_binary(ptx::Type type) {
  return by_width(type, []<typename T>() { return binary_pair<F, T>(); });
}

/// NOTE: g++ 12 fails on masked 16-bit minima with AVX-512, so 16-bit ones go lane by lane.
template <typename F>
OpPair ordered_binary(ptx::Type type) {
  return by_integer(type, []<typename T>() { return lanes_pair<sizeof(T) == 2, F, T, T, T>(); });
}

template <typename F>
OpPair signed_unary(ptx::Type type) {
  return by_width(type, []<typename T>() {
    using S = std::make_signed_t<T>;
    return lanes_pair<sizeof(T) == 2, F, S, S>();
  });
}

}  // namespace

OpPair select_integer(const ptx::Instruction& inst, const OperandWidths&) {
  using ptx::Handler;
  const ptx::Modifiers& mods = inst.modifiers;
  const ptx::Type type = mods.type[0];
  if (!is_integer(type) || mods.cc) return {};
  const bool low = mods.part == ptx::MulPart::lo;
  switch (inst.row->handler) {
    case Handler::add:
      if (mods.sat) return binary_pair<AddSaturate, std::int32_t>();
      return wrapping_binary<AddInteger>(type);
    case Handler::sub:
      if (mods.sat) return binary_pair<SubtractSaturate, std::int32_t>();
      return wrapping_binary<SubtractInteger>(type);
    case Handler::mul: return low ? wrapping_binary<MultiplyInteger>(type) : OpPair{};
    case Handler::mad:
      if (!low) return {};
      return by_width(type, []<typename T>() { return ternary_pair<MultiplyAdd, T>(); });
    case Handler::min: return ordered_binary<Minimum>(type);
    case Handler::max: return ordered_binary<Maximum>(type);
    case Handler::abs: return signed_unary<AbsoluteInteger>(type);
    case Handler::neg: return signed_unary<NegateInteger>(type);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
