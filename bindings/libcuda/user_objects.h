// Objects of the program kept alive by graphs: targets of their kernels' arguments.
#pragma once

#include "driver/driver_types.h"

namespace kernwright::libcuda {

/// The executable graph, made or updated from `graph`, keeps the same objects.
void keep_for(CUgraphExec executable, CUgraph graph);

}  // namespace kernwright::libcuda
