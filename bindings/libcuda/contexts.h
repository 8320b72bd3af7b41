// Driver functions that the library itself never calls: contexts and look-up, over the table.
#pragma once

#include "driver/driver_api.h"

namespace kernwright::libcuda {

/// cuGetProcAddress of this library: knows the names of the simulated device's table and those
/// below. A version whose signature differs from the table's is not found, never a wrong function.
CUresult get_proc_address(const char* symbol, void** function, int cuda_version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status);

}  // namespace kernwright::libcuda
