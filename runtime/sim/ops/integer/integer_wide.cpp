// Integer arithmetic beyond one word: high and wide products, division, sums of differences, 24-bit
// forms.
#include "sim/ops/types.h"
#include "sim/ptx/isa.h"

#include <limits>

namespace kernwright::sim::KW_SIM_NS {

OpPair select_integer_wide(const ptx::Instruction& inst, const OperandWidths& widths);
OpPair index_address(bool is_signed);

namespace {

template <typename T>
struct Widened;
template <>
struct Widened<std::uint16_t> {
  using type = std::uint32_t;
};
template <>
struct Widened<std::int16_t> {
  using type = std::int32_t;
};
template <>
struct Widened<std::uint32_t> {
  using type = std::uint64_t;
};
template <>
struct Widened<std::int32_t> {
  using type = std::int64_t;
};
template <>
struct Widened<std::uint64_t> {
  using type = Uint128;
};
template <>
struct Widened<std::int64_t> {
  using type = Int128;
};
template <typename T>
using Wide = typename Widened<T>::type;

struct MultiplyHigh {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> (8 * sizeof(T)));
  }
};
struct MultiplyHighAdd {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return static_cast<T>(static_cast<Wrapping<T>>(MultiplyHigh{}(a, b)) +
                          static_cast<Wrapping<T>>(c));
  }
};
struct MultiplyHighAddSaturate {
  std::int32_t operator()(std::int32_t a, std::int32_t b, std::int32_t c) const {
    using Limits = std::numeric_limits<std::int32_t>;
    const std::int64_t sum = std::int64_t{MultiplyHigh{}(a, b)} + c;
    return static_cast<std::int32_t>(sum < Limits::min()   ? Limits::min()
                                     : sum > Limits::max() ? Limits::max()
                                                           : sum);
  }
};
struct MultiplyWide {
  template <typename T>
  Wide<T> operator()(T a, T b) const {
    return static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b);
  }
};
struct MultiplyWideAdd {
  template <typename T>
  Wide<T> operator()(T a, T b, Wide<T> c) const {
    using W = Wrapping<Wide<T>>;
    return static_cast<Wide<T>>(static_cast<W>(MultiplyWide{}(a, b)) + static_cast<W>(c));
  }
};

/// By zero a GPU gives all ones, by -1 the wrapped negation.
struct Divide {
  template <typename T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
    }
    return static_cast<T>(a / b);
  }
};
/// By zero a GPU gives all ones.
struct Remainder {
  template <typename T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct SumOfDifference {
  template <typename T>
  T operator()(T a, T b, T c) const {
    using W = Wrapping<T>;
    const W difference =
        a < b ? static_cast<W>(b) - static_cast<W>(a) : static_cast<W>(a) - static_cast<W>(b);
    return static_cast<T>(static_cast<W>(c) + difference);
  }
};

/// The 48-bit product of the low 24 bits of each: its low or its high 32 bits.
template <typename T, bool kHigh>
T product24(T a, T b) {
  const auto narrow = [](T x) {
    return static_cast<std::int64_t>(static_cast<T>(static_cast<std::uint32_t>(x) << 8) >> 8);
  };
  const auto product = static_cast<std::uint64_t>(narrow(a) * narrow(b));
  return static_cast<T>(kHigh ? product >> 16 : product);
}
template <bool kHigh>
struct Multiply24 {
  template <typename T>
  T operator()(T a, T b) const {
    return product24<T, kHigh>(a, b);
  }
};
template <bool kHigh>
struct MultiplyAdd24 {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return static_cast<T>(static_cast<std::uint32_t>(product24<T, kHigh>(a, b)) +
                          static_cast<std::uint32_t>(c));
  }
};
struct MultiplyAdd24Saturate {
  std::int32_t operator()(std::int32_t a, std::int32_t b, std::int32_t c) const {
    using Limits = std::numeric_limits<std::int32_t>;
    const std::int64_t sum = std::int64_t{product24<std::int32_t, true>(a, b)} + c;
    return static_cast<std::int32_t>(sum < Limits::min()   ? Limits::min()
                                     : sum > Limits::max() ? Limits::max()
                                                           : sum);
  }
};

OpPair select_product(ptx::Type type, bool adds, ptx::MulPart part) {
  if (part == ptx::MulPart::hi) {
    return by_integer(type, [=]<typename T>() {
      if constexpr (sizeof(T) == 8) {
        return adds ? ternary_serial_pair<MultiplyHighAdd, T>()
                    : binary_serial_pair<MultiplyHigh, T>();
      } else {
        return adds ? ternary_pair<MultiplyHighAdd, T>() : binary_pair<MultiplyHigh, T>();
      }
    });
  }
  if (part != ptx::MulPart::wide) return {};
  return by_integer(type, [=]<typename T>() -> OpPair {
    if constexpr (sizeof(T) == 8) {
      return {};
    } else {
      return adds ? ternary_pair<MultiplyWideAdd, Wide<T>, T, T, Wide<T>>()
                  : binary_pair<MultiplyWide, Wide<T>, T>();
    }
  });
}

OpPair select_24(const ptx::Modifiers& mods, bool adds) {
  const bool high = mods.part == ptx::MulPart::hi;
  if (mods.sat) return ternary_pair<MultiplyAdd24Saturate, std::int32_t>();
  return by_integer(mods.type[0], [=]<typename T>() -> OpPair {
    if constexpr (sizeof(T) != 4) {
      return {};
    } else if (high) {
      return adds ? ternary_pair<MultiplyAdd24<true>, T>() : binary_pair<Multiply24<true>, T>();
    } else {
      return adds ? ternary_pair<MultiplyAdd24<false>, T>() : binary_pair<Multiply24<false>, T>();
    }
  });
}

template <typename F>
OpPair serial_binary(ptx::Type type) {
  return by_integer(type, []<typename T>() { return binary_serial_pair<F, T>(); });
}

}  // namespace

OpPair index_address(bool is_signed) {
  return select_product(is_signed ? ptx::Type::s32 : ptx::Type::u32, true, ptx::MulPart::wide);
}

OpPair select_integer_wide(const ptx::Instruction& inst, const OperandWidths&) {
  using ptx::Handler;
  const ptx::Modifiers& mods = inst.modifiers;
  const ptx::Type type = mods.type[0];
  if (!is_integer(type) || mods.cc) return {};
  switch (inst.row->handler) {
    case Handler::mul: return select_product(type, false, mods.part);
    case Handler::mad:
      if (mods.sat) return ternary_pair<MultiplyHighAddSaturate, std::int32_t>();
      return select_product(type, true, mods.part);
    case Handler::mul24: return select_24(mods, false);
    case Handler::mad24: return select_24(mods, true);
    case Handler::div: return serial_binary<Divide>(type);
    case Handler::rem: return serial_binary<Remainder>(type);
    case Handler::sad:
      return by_integer(type, []<typename T>() {
        if constexpr (sizeof(T) == 2) {
          return ternary_serial_pair<SumOfDifference, T>();
        } else {
          return ternary_pair<SumOfDifference, T>();
        }
      });
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
