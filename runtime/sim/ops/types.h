// From PTX types to C++ types, for the selectors.
#pragma once

#include "sim/ops/lanes.h"

#include <cstdint>
#include <iterator>

namespace kernwright::sim::KW_SIM_NS {

/// Unsigned, at least 32 bits wide: arithmetic in it wraps and never promotes to int.
template <typename T>
using Wrapping = SizedInteger<sizeof(T) == 8 ? 8 : 4>;

/// Calls f.operator()<T>() with the unsigned type as wide as `type` (possibly a floating one);
/// nulls for others.
template <typename F>
OpPair by_width(ptx::Type type, F f) {
  switch (ptx::bits(type)) {
    case 8:
    case 16: return f.template operator()<std::uint16_t>();
    case 32: return f.template operator()<std::uint32_t>();
    case 64: return f.template operator()<std::uint64_t>();
    default: return {};
  }
}

inline bool is_signed(ptx::Type type) { return type >= ptx::Type::s16 && type <= ptx::Type::s64; }
inline bool is_integer(ptx::Type type) {
  return is_signed(type) || (type >= ptx::Type::u16 && type <= ptx::Type::u64) ||
         (type >= ptx::Type::b16 && type <= ptx::Type::b64);
}

/// The same with the C++ type of an integer or bit type of 16 bits or more.
template <typename F>
OpPair by_integer(ptx::Type type, F f) {
  if (!is_integer(type)) return {};
  return by_width(type, [&]<typename T>() {
    return is_signed(type) ? f.template operator()<std::make_signed_t<T>>()
                           : f.template operator()<T>();
  });
}

/// The relations accepted by a ptx::Compare: 1 less, 2 equal, 4 greater, 8 unordered (a NaN).
inline constexpr std::uint8_t kHoldsFor[] = {0, 2,  5,  1, 3,  4,  6,  1, 3, 4,
                                             6, 10, 13, 9, 11, 12, 14, 7, 8};
static_assert(std::size(kHoldsFor) == static_cast<std::size_t>(ptx::Compare::nan) + 1);

inline unsigned holds_for(ptx::Compare compare) {
  return kHoldsFor[static_cast<std::size_t>(compare)];
}

/// The result of a comparison together with a predicate.
inline std::uint32_t combine(ptx::BoolOp how, std::uint32_t bits, std::uint32_t rhs) {
  using ptx::BoolOp;
  switch (how) {
    case BoolOp::and_: return bits & rhs;
    case BoolOp::or_: return bits | rhs;
    case BoolOp::xor_: return bits ^ rhs;
    default: return bits;
  }
}

/// Clamped to signed 32 bits.
inline std::int32_t saturate(std::int64_t value) {
  const std::int64_t low = value < INT32_MIN ? INT32_MIN : value;
  return static_cast<std::int32_t>(low > INT32_MAX ? INT32_MAX : low);
}

}  // namespace kernwright::sim::KW_SIM_NS
