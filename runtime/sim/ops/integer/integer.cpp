// Integer arithmetic that vectorises: add, sub, mul.lo, mad.lo, min, max, abs, neg.
#include "sim/ops/types.h"
#include "sim/ptx/isa.h"

#include <limits>

namespace kernwright::sim::KW_SIM_NS {

OpPair select_integer(const ptx::Instruction& inst, const OperandWidths& widths);

namespace {

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Subtract {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct Multiply {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct MultiplyAdd {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b) +
                          static_cast<Wrapping<T>>(c));
  }
};
struct Minimum {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Maximum {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Absolute {
  template <typename T>
  T operator()(T a) const {
    return a < 0 ? static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a)) : a;
  }
};
struct Negate {
  template <typename T>
  T operator()(T a) const {
    return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
  }
};

std::int32_t saturate(std::int64_t value) {
  using Limits = std::numeric_limits<std::int32_t>;
  return static_cast<std::int32_t>(value < Limits::min()   ? Limits::min()
                                   : value > Limits::max() ? Limits::max()
                                                           : value);
}
struct AddSaturate {
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return saturate(std::int64_t{a} + b);
  }
};
struct SubtractSaturate {
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return saturate(std::int64_t{a} - b);
  }
};

template <typename F>
OpPair wrapping_binary(ptx::Type type) {
  return by_width(type, []<typename T>() { return binary_pair<F, T>(); });
}

/// NOTE: g++ 12 fails on masked 16-bit minima with AVX-512, so 16-bit ones go lane by lane.
template <typename F>
OpPair ordered_binary(ptx::Type type) {
  return by_integer(type, []<typename T>() {
    if constexpr (sizeof(T) == 2) {
      return binary_serial_pair<F, T>();
    } else {
      return binary_pair<F, T>();
    }
  });
}

template <typename F>
OpPair signed_unary(ptx::Type type) {
  return by_integer(type, []<typename T>() {
    if constexpr (sizeof(T) == 2) {
      return unary_serial_pair<F, std::make_signed_t<T>>();
    } else {
      return unary_pair<F, std::make_signed_t<T>>();
    }
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
      return wrapping_binary<Add>(type);
    case Handler::sub:
      if (mods.sat) return binary_pair<SubtractSaturate, std::int32_t>();
      return wrapping_binary<Subtract>(type);
    case Handler::mul: return low ? wrapping_binary<Multiply>(type) : OpPair{};
    case Handler::mad:
      if (!low) return {};
      return by_width(type, []<typename T>() { return ternary_pair<MultiplyAdd, T>(); });
    case Handler::min: return ordered_binary<Minimum>(type);
    case Handler::max: return ordered_binary<Maximum>(type);
    case Handler::abs: return signed_unary<Absolute>(type);
    case Handler::neg: return signed_unary<Negate>(type);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
