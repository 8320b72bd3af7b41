// Foreign text, in a form for one line of a message.
#pragma once

#include <string>
#include <string_view>

namespace kernwright {

/// The text with a '?' for each control character: a message must not end at a NUL.
std::string printable(std::string_view text);

}  // namespace kernwright
