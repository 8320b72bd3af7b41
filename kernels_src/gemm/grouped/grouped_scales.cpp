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
Array columns_of(const Array& scale, const Shape& weights, const Stream& on) {
  const Array dense = contiguous(scale, on);
  const std::int64_t each = dense.size() / weights[0];
  return contiguous(dense.reshape({weights[0], each}).broadcast({weights[0], weights[1]}), on);
}

}  // namespace

bool has_block_scales(const GroupedGemm& of) {
  if (!of.scales) return false;
  const Shape& weights = of.weights.shape();
  const std::int64_t deep = ceil_div(weights[2], kGemmBlock);
  Shape rows = of.x.shape();
  rows.back() = deep;
  return of.scales->x.shape() == rows &&
         of.scales->weights.shape() == Shape{weights[0], ceil_div(weights[1], kGemmBlock), deep};
}

bool promotes_grouped(const GroupedGemm& of) {
  return of.scales && (!of.fast_sums || has_block_scales(of));
}

ScalarType grouped_result_type(const GroupedGemm& of) {
  if (of.type) return *of.type;
  return of.scales ? ScalarType::bfloat16 : of.x.type();
}

GroupedOperands grouped_operands(const GroupedGemm& of, bool wgmma, const Stream& on) {
  constexpr ScalarType wide = ScalarType::bfloat16;
  GroupedOperands made{.x = of.x, .weights = of.weights};
  if (of.scales) {
    const Array &a = of.scales->x, &b = of.scales->weights;
    const bool of_blocks = has_block_scales(of);
    if (!of_blocks) {
      made.rows = contiguous(a, on).reshape({a.size()});
      made.columns = columns_of(b, of.weights.shape(), on);
      if (!wgmma) {
        made.x = cast(of.x, wide, on);
        made.weights = cast(of.weights, wide, on);
      }
    } else if (wgmma) {
      // The scales of a tile's rows follow each other.
      made.blocks = GemmBlockScales{gemm_operand(as_grouped_rows(a, on), on, false).array, b};
    } else {
      made.x = dequantize_tiles(of.x, a, {1, kGemmBlock}, wide, on);
      made.weights = dequantize_tiles(of.weights, b, {kGemmBlock, kGemmBlock}, wide, on);
    }
  }
  made.x = as_grouped_rows(made.x, on);
  return made;
}

}  // namespace kernwright::kernels
