// Integer arithmetic beyond one word: high and wide products, division, sums of differences, 24-bit
// forms.
#include "sim/ops/types.h"
#include "sim/ptx/isa.h"

namespace kernwright::sim::KW_SIM_NS {

OpPair index_address(bool is_signed);

namespace {

template <typename T>
using Wide = SizedInteger<2 * sizeof(T), std::is_signed_v<T>>;

using MultiplyWide = decltype([]<typename T>(T a, T b) { return Wide<T>{a} * Wide<T>{b}; });
using MultiplyWideAdd = decltype([]<typename T>(T a, T b, Wide<T> c) {
  using W = Wrapping<Wide<T>>;
  return static_cast<W>(MultiplyWide{}(a, b)) + static_cast<W>(c);
});
using MultiplyHigh = decltype([]<typename T>(T a, T b) {
  return static_cast<T>((Wide<T>{a} * Wide<T>{b}) >> (8 * sizeof(T)));
});
using MultiplyHighAdd = decltype([]<typename T>(T a, T b, T c) {
  return static_cast<Wrapping<T>>(MultiplyHigh{}(a, b)) + static_cast<Wrapping<T>>(c);
});
using MultiplyHighAddSaturate = decltype([](std::int32_t a, std::int32_t b, std::int32_t c) {
  return saturate(std::int64_t{MultiplyHigh{}(a, b)} + c);
});

/// By zero a GPU gives all ones, by -1 the wrapped negation.
using DivideInteger = decltype([]<typename T>(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
  }
  return static_cast<T>(a / b);
});
/// By zero a GPU gives all ones.
using Remainder = decltype([]<typename T>(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return T{0};
  }
  return static_cast<T>(a % b);
});
using DifferenceSum = decltype([]<typename T>(T a, T b, T c) {
  using W = Wrapping<T>;
  const W x = static_cast<W>(a), y = static_cast<W>(b);
  return static_cast<W>(c) + (a < b ? y - x : x - y);
});

/// The 48-bit product of the low 24 bits of each: its low or its high 32 bits.
template <bool kHigh>
struct Multiply24 {
  template <typename T>
  T operator()(T a, T b) const {
    const auto narrow = [](T x) {
      return static_cast<std::int64_t>(static_cast<T>(static_cast<std::uint32_t>(x) << 8) >> 8);
    };
    const auto product = static_cast<std::uint64_t>(narrow(a) * narrow(b));
    return static_cast<T>(kHigh ? product >> 16 : product);
  }
};
template <bool kHigh>
struct MultiplyAdd24 {
  template <typename T>
  std::uint32_t operator()(T a, T b, T c) const {
    return static_cast<std::uint32_t>(Multiply24<kHigh>{}(a, b)) + static_cast<std::uint32_t>(c);
  }
};
using MultiplyAdd24Saturate = decltype([](std::int32_t a, std::int32_t b, std::int32_t c) {
  return saturate(std::int64_t{Multiply24<true>{}(a, b)} + c);
});

OpPair select_product(ptx::Type type, bool adds, ptx::MulPart part) {
  if (part == ptx::MulPart::hi) {
    return by_integer(type, [=]<typename T>() {
      return adds ? lanes_pair<sizeof(T) == 8, MultiplyHighAdd, T, T, T, T>()
                  : lanes_pair<sizeof(T) == 8, MultiplyHigh, T, T, T>();
    });
  }
  if (part != ptx::MulPart::wide) return {};
  return by_integer(type, [=]<typename T>() -> OpPair {
    if constexpr (sizeof(T) == 8)
      return {};
    else
      return adds ? ternary_pair<MultiplyWideAdd, Wide<T>, T, T, Wide<T>>()
                  : binary_pair<MultiplyWide, Wide<T>, T>();
  });
}

template <bool kHigh>
OpPair select_24(ptx::Type type, bool adds) {
  using S = std::int32_t;
  using U = std::uint32_t;
  if (adds)
    return type == ptx::Type::s32 ? ternary_pair<MultiplyAdd24<kHigh>, S>()
                                  : ternary_pair<MultiplyAdd24<kHigh>, U>();
  return type == ptx::Type::s32 ? binary_pair<Multiply24<kHigh>, S>()
                                : binary_pair<Multiply24<kHigh>, U>();
}

template <typename F>
OpPair serial_binary(ptx::Type type) {
  return by_integer(type, []<typename T>() { return lanes_pair<true, F, T, T, T>(); });
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
    case Handler::mul24:
    case Handler::mad24: {
      if (mods.sat) return ternary_pair<MultiplyAdd24Saturate, std::int32_t>();
      const bool adds = inst.row->handler == Handler::mad24;
      return mods.part == ptx::MulPart::hi ? select_24<true>(type, adds)
                                           : select_24<false>(type, adds);
    }
    case Handler::div: return serial_binary<DivideInteger>(type);
    case Handler::rem: return serial_binary<Remainder>(type);
    case Handler::sad:
      return by_integer(type, []<typename T>() {
        return lanes_pair<sizeof(T) == 2, DifferenceSum, T, T, T, T>();
      });
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
