// Checks of a product of groups, before anything is queued.
#pragma once

#include "kernels_src/gemm/grouped/grouped_gemm.h"

namespace kernwright::kernels {

/// The shape of the result. Throws InvalidArgument and ArgumentError as GroupedGemm::run().
Shape check_grouped(const GroupedGemm& gemm);
/// Throws ArgumentError for tiles that the kernels do not have.
void require_grouped_tiles(const GroupedGemm& gemm);

}  // namespace kernwright::kernels
