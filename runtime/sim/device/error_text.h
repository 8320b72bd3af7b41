// A sentence for each result code, as cuGetErrorString gives it.
#pragma once

#include "driver/driver_types.h"

namespace kernwright::sim {

/// Null for a code that does not exist.
const char* error_text(CUresult code) noexcept;

}  // namespace kernwright::sim
