// Kernels of libraries: handles good in every context, where a function is of one.
#pragma once

#include "driver/driver_types.h"
#include "sim/device.h"

namespace kernwright::libcuda {

/// Programs pass a CUkernel wherever the driver takes a CUfunction.
inline CUfunction as_function(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

/// The function of the current context, where `handle` is a CUkernel; else `handle` itself.
CUfunction kernel_function(CUfunction handle);

}  // namespace kernwright::libcuda
