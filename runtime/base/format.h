// One place that brings fmt in: kernwright::format(pattern, args...) makes a std::string.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace kernwright {

/// Formats like std::format; the pattern is checked at compile time.
template <typename... Args>
std::string format(fmt::format_string<Args...> pattern, Args&&... args) {
  return fmt::format(pattern, std::forward<Args>(args)...);
}

}  // namespace kernwright
