// Numbers of things in words.
#pragma once

#include "base/format.h"

#include <string_view>

namespace kernwright {

/// "1 byte", "2 bytes".
template <typename Count>
std::string counted(Count count, std::string_view noun) {
  return format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace kernwright
