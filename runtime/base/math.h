// Arithmetic of sizes in whole parts.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace kernwright {

/// The 64-bit type of arithmetic with both: unsigned where one is a 64-bit unsigned integer.
template <std::integral A, std::integral B>
using WideInteger = std::common_type_t<A, B, std::int64_t>;

/// count / each, rounded up: the parts of `each` that hold `count`. `count` is not negative, `each`
/// is at least 1, and the sum of both fits 64 bits.
template <std::integral A, std::integral B>
constexpr WideInteger<A, B> ceil_div(A count, B each) noexcept {
  const auto part = static_cast<WideInteger<A, B>>(each);
  return (static_cast<WideInteger<A, B>>(count) + part - 1) / part;
}

/// The least multiple of `unit` that is not below `value`: `value` is not negative, `unit` is at
/// least 1.
template <std::integral A, std::integral B>
constexpr WideInteger<A, B> round_up(A value, B unit) noexcept {
  const auto wide = static_cast<WideInteger<A, B>>(value);
  const auto each = static_cast<WideInteger<A, B>>(unit);
  const auto rest = wide % each;
  return rest == 0 ? wide : wide + (each - rest);
}

}  // namespace kernwright
