// The checks of weights that are to be packed.
#pragma once

#include "kernels_src/packed/packed.h"

namespace kernwright::kernels {

/// Throws InvalidArgument unless the call has the arrays that its format asks for, each with the
/// type, the shape or the number of elements that n, k, group and tile ask for.
void check_pack(const PackCall& call);

}  // namespace kernwright::kernels
