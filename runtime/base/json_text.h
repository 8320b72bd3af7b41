// JSON written by hand, for those who do not read it.
#pragma once

#include <string>
#include <string_view>

namespace kernwright {

/// The text as a JSON string, with its quotes. Bytes above 127 stay as they are.
std::string json_string(std::string_view text);

}  // namespace kernwright
