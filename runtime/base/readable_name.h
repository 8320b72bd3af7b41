// Names of object code as a person writes them.
#pragma once

#include <string>

namespace kernwright {

/// "scale<float, 4>" for "_Z5scaleIfLi4EEvPT_": without result and parameters, as kernels are asked
/// for. A name that is not mangled stays as it is.
std::string readable_name(const std::string& lowered);

}  // namespace kernwright
