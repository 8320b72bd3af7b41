// The scales of products of groups, and operands with them.
#pragma once

#include "kernels_src/gemm/grouped/grouped_gemm.h"

#include <optional>

namespace kernwright::kernels {

/// Whether there are scales, of blocks.
bool has_block_scales(const GroupedGemm& gemm);
/// Whether it is one for promoted_gemm.cu. Scales of blocks need accumulators of each stage.
bool promotes_grouped(const GroupedGemm& gemm);

ScalarType grouped_result_type(const GroupedGemm& gemm);

/// Rows and matrices as the kernels want them, with one kind of scales or none.
struct GroupedOperands {
  Array x, weights;
  std::optional<GemmBlockScales> blocks{};  ///< of promoted_gemm.cu; b's are (groups, n, k) / 128
  std::optional<Array> rows{}, columns{};   ///< one, or (rows,); (groups, n)
};
/// Without `wgmma` float8 becomes bfloat16, which holds all numbers of float8; numbers in blocks
/// are multiplied by the scales and rounded.
GroupedOperands grouped_operands(const GroupedGemm& gemm, bool wgmma, const Stream& on);

}  // namespace kernwright::kernels
