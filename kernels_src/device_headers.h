// The device headers of include/, for every source of the process.
#pragma once

namespace kernwright::kernels {

/// Makes them available as `#include <kernwright/...>`. Thread-safe; calling it again does no harm.
void register_device_headers();

}  // namespace kernwright::kernels
