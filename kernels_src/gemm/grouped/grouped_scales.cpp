// What the kernels of a device make of scales.
#include "kernels_src/gemm/grouped/grouped_scales.h"

#include "base/math.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/formats/formats.h"
#include "kernels_src/gemm/gemm_layout.h"
#include "kernels_src/gemm/grouped/grouped_rows.h"
#include "kernels_src/operands.h"

namespace kernwright::kernels {
namespace {

/// (groups, n), of one number for each group or column.
Array group_columns(const Array& scale, const Shape& weights, const Stream& on) {
  const Array dense = contiguous(scale, on);
  const std::int64_t each = dense.size() / weights[0];
  return contiguous(dense.reshape({weights[0], each}).broadcast({weights[0], weights[1]}), on);
}

}  // namespace

bool has_block_scales(const GroupedGemm& gemm) {
  if (!gemm.scales) return false;
  const Shape& weights = gemm.weights.shape();
  const std::int64_t deep = ceil_div(weights[2], kGemmBlock);
  Shape rows = gemm.x.shape();
  rows.back() = deep;
  return gemm.scales->x.shape() == rows &&
         gemm.scales->weights.shape() == Shape{weights[0], ceil_div(weights[1], kGemmBlock), deep};
}

bool promotes_grouped(const GroupedGemm& gemm) {
  return gemm.scales && (!gemm.fast_accum || has_block_scales(gemm));
}

ScalarType grouped_result_type(const GroupedGemm& gemm) {
  if (gemm.type) return *gemm.type;
  return gemm.scales ? ScalarType::bfloat16 : gemm.x.type();
}

GroupedOperands grouped_operands(const GroupedGemm& gemm, bool wgmma, const Stream& on) {
  constexpr ScalarType wide = ScalarType::bfloat16;
  GroupedOperands made{.x = gemm.x, .weights = gemm.weights};
  if (gemm.scales) {
    const Array &a = gemm.scales->x, &b = gemm.scales->weights;
    const bool block_scaled = has_block_scales(gemm);
    if (!block_scaled) {
      made.rows = contiguous(a, on).reshape({a.size()});
      made.columns = group_columns(b, gemm.weights.shape(), on);
      if (!wgmma) {
        made.x = cast(gemm.x, wide, on);
        made.weights = cast(gemm.weights, wide, on);
      }
    } else if (wgmma) {
      // The scales of a tile's rows follow each other.
      made.blocks = GemmBlockScales{gemm_operand(as_grouped_rows(a, on), on, false).array, b};
    } else {
      made.x = dequantize_tiles(gemm.x, a, {1, kGemmBlock}, wide, on);
      made.weights = dequantize_tiles(gemm.weights, b, {kGemmBlock, kGemmBlock}, wide, on);
    }
  }
  made.x = as_grouped_rows(made.x, on);
  return made;
}

}  // namespace kernwright::kernels
