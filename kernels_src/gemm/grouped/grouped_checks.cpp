// The shapes, types and tiles that a product of groups takes.
#include "kernels_src/gemm/grouped/grouped_checks.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/gemm/gemm_kernels.h"
#include "kernels_src/gemm/grouped/grouped_rows.h"
#include "kernels_src/gemm/grouped/grouped_scales.h"
#include "kernels_src/operands.h"

namespace kernwright::kernels {
namespace {

bool scales_rows(const Array& scale, const Array& x) {
  const Shape rows(x.shape().begin(), x.shape().end() - 1);
  Shape lines = x.shape();
  lines.back() = 1;
  return scale.size() == 1 || scale.shape() == rows || scale.shape() == lines;
}

bool scales_columns(const Array& scale, const Shape& weights) {
  const Shape &shape = scale.shape(), columns = {weights[0], weights[1]};
  return shape == Shape{weights[0]} || shape == columns ||
         shape == Shape{weights[0], weights[1], 1} || shape == Shape{weights[0], 1, 1};
}

void require_scale(const Array& scale, const char* name, const Array& x) {
  require_one_device(scale, name, x, "x");
  if (scale.type() != ScalarType::float32) {
    throw ArgumentError(format("{} is float32, not {}", name, scale.identify()));
  }
}

/// Float8 has scales, and nothing else has any.
void require_grouped_scales(const GroupedGemm& gemm) {
  if (!gemm.scales) {
    if (!gemm.type || *gemm.type == gemm.x.type()) return;
    throw ArgumentError(format("the result of grouped rows has their type, not {}: x is {}",
                               scalar_name(*gemm.type), gemm.x.identify()));
  }
  if (!is_float8(gemm.x.type()) || !is_float8(gemm.weights.type())) {
    throw ArgumentError(
        format("scale_a and scale_b are those of float8_e4m3fn and float8_e5m2: x is {}, weights "
               "are {}",
               gemm.x.identify(), gemm.weights.identify()));
  }
  require_grouped_device(gemm.x);
  const ScalarType out = grouped_result_type(gemm);
  if (!is_half(out) && out != ScalarType::float32) {
    throw ArgumentError(format("the result of this product is float16, bfloat16 or float32, not {}",
                               scalar_name(out)));
  }
  const Array &a = gemm.scales->x, &b = gemm.scales->weights;
  require_scale(a, "scale_a", gemm.x);
  require_scale(b, "scale_b", gemm.x);
  if (has_block_scales(gemm) || (scales_rows(a, gemm.x) && scales_columns(b, gemm.weights.shape())))
    return;
  throw InvalidArgument(format(
      "Incompatible dimensions: scale_a is {} and scale_b {} for x of {} and weights of {}; scales "
      "are those of rows (one number, or one for each row of x; (groups,) or (groups, n)) or of "
      "blocks of 128: (..., rows, k / 128) and (groups, n / 128, k / 128), rounded up",
      shape_to_string(a.shape()), shape_to_string(b.shape()), shape_to_string(gemm.x.shape()),
      shape_to_string(gemm.weights.shape())));
}

[[noreturn]] void refuse_grouped(const GroupedGemm& gemm, const char* what) {
  throw InvalidArgument(
      format("Incompatible dimensions or types of a product of groups: x is {}, "
             "weights are {}; {}",
             gemm.x.identify(), gemm.weights.identify(), what));
}

}  // namespace

Shape check_grouped(const GroupedGemm& gemm) {
  require_one_device(gemm.x, "x", gemm.weights, "weights");
  if (!gemm.scales) require_grouped_type(gemm.x, "x");
  if (gemm.weights.ndim() != 3) refuse_grouped(gemm, "weights are (groups, n, k)");
  if (gemm.x.ndim() != 2 && gemm.x.ndim() != 3) refuse_grouped(gemm, "x has 2 dimensions or 3");
  const Shape& weights = gemm.weights.shape();
  if (!gemm.scales && gemm.weights.type() != gemm.x.type())
    refuse_grouped(gemm, "both have one type");
  if (gemm.x.shape().back() != weights[2]) refuse_grouped(gemm, "their last extents must be equal");
  if (gemm.x.ndim() == 3 && gemm.x.shape()[0] != weights[0]) {
    refuse_grouped(gemm, "x has three dimensions, and the first is not that of the weights");
  }
  if (gemm.x.ndim() == 3 && gemm.groups.kind != RowGroups::Kind::counts) {
    refuse_grouped(gemm, "groups that lie apart are told by counts");
  }
  if (weights[0] == 0) refuse_grouped(gemm, "there is no group");
  require_groups(gemm.groups, weights[0], gemm.x);
  require_grouped_scales(gemm);
  std::optional<ScalarType> type;
  if (!gemm.scales) type = gemm.x.type();
  require_epilogue({.bias = gemm.bias}, {.product = "a product of groups",
                                         .x = gemm.x,
                                         .result = weights,
                                         .type = type,
                                         .columns = {weights[0], weights[1]}});
  if (gemm.gate && (gemm.activation || weights[1] % 2 != 0)) {
    refuse_grouped(gemm, "a gate has an even n, and no activation beside it");
  }
  Shape shape = gemm.x.shape();
  shape.back() = gemm.gate ? weights[1] / 2 : weights[1];
  return shape;
}

void require_grouped_tiles(const GroupedGemm& gemm) {
  const bool block_scaled = has_block_scales(gemm);
  if (gemm.tile) require_gemm_tile(*gemm.tile, promotes_grouped(gemm), block_scaled);
  if (gemm.tile && block_scaled && gemm.tile->rows > 128) {
    throw ArgumentError(
        format("a tile of a product of groups with scales of blocks has 64 or 128 rows, not {}",
               gemm.tile->rows));
  }
  if (gemm.mma_tile) require_mma_tile(*gemm.mma_tile);
  if (gemm.fma_tile) require_fma_tile(*gemm.fma_tile, sizeof(float));
  const bool wide = gemm.x.type() == ScalarType::float32;
  if (wide ? gemm.tile || gemm.mma_tile || gemm.by_mma : gemm.fma_tile.has_value()) {
    throw ArgumentError(
        format("this tile is none of a product of groups of {}", gemm.x.identify()));
  }
}

}  // namespace kernwright::kernels
