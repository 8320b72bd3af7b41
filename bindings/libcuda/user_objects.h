// Objects of the program that graphs keep alive: what their kernels' arguments point to.
#pragma once

#include "driver/driver_types.h"

namespace kernwright::libcuda {

/// The executable graph, made or updated from `graph`, keeps what that keeps.
void keep_for(CUgraphExec executable, CUgraph graph);

}  // namespace kernwright::libcuda
