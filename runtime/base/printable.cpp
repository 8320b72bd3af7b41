// Replaces what would cut or break a message.
#include "base/printable.h"

#include <algorithm>

namespace kernwright {

std::string printable(std::string_view text) {
  std::string result(text);
  std::replace_if(
      result.begin(), result.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; },
      '?');
  return result;
}

}  // namespace kernwright
