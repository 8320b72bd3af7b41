// Object code from a cubin or PTX compiled elsewhere.
#pragma once

#include "jit/object_code.h"

#include <string_view>

namespace kernwright {

/// Names and signatures as far as the code tells them: lowered names of C++ spell their types; of
/// others the sizes are known, or the driver tells them once the code is loaded. Throws Error for
/// any other kind, and for a damaged cubin.
ObjectCode object_code_of_image(std::string_view image);

}  // namespace kernwright
