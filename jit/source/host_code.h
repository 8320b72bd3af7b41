// Removes parts of a source used only by the host.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace kernwright {

/// Macros by the contents of their #define lines.
struct KnownMacros {
  std::set<std::string, std::less<>> device;     ///< that mark a function or variable as a device's
  std::set<std::string, std::less<>> functions;  ///< with parameters
};

/// Adds the macros defined by `text`. Call it again for a text whose macros use those of another.
void collect_macros(std::string_view text, KnownMacros& macros);

/// `text` with blanks for: functions without __device__ or __global__ (main among them), variables
/// and classes for host code only, using-declarations of host names. These stay: constexpr,
/// constants of numbers, types, templates of device code, #define and #if lines. Every line stays
/// where it is. Looks at tokens only and never fails: text it does not understand stays.
std::string without_host_code(std::string_view text, const KnownMacros& macros);

}  // namespace kernwright
