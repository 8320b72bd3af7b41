// One place that brings fmt in: kernwright::format(pattern, args...) makes a std::string.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace kernwright {

/// Formats like std::format; the pattern is checked at compile time. A function object, so that an
/// argument of a std type does not bring std::format into the overload set.
struct Format {
  template <typename... Args>
  std::string operator()(fmt::format_string<Args...> pattern, Args&&... args) const {
    return fmt::format(pattern, std::forward<Args>(args)...);
  }
};
inline constexpr Format format{};

}  // namespace kernwright
