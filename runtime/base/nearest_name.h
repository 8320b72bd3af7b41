// The name that a mistyped one probably means.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kernwright {

/// The nearest of `names` by edit distance, empty when none is near (a third of the length).
std::string nearest_name(std::string_view wanted, std::span<const std::string> names);

/// ", did you mean \"saxpy\"? There is: saxpy, scale" or ": there is none".
std::string describe_names(std::string_view wanted, std::span<const std::string> names);

}  // namespace kernwright
