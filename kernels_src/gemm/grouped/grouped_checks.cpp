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

bool is_of_rows(const Array& scale, const Array& x) {
  const Shape rows(x.shape().begin(), x.shape().end() - 1);
  Shape lines = x.shape();
  lines.back() = 1;
  return scale.size() == 1 || scale.shape() == rows || scale.shape() == lines;
}

bool is_of_columns(const Array& scale, const Shape& weights) {
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
void require_grouped_scales(const GroupedGemm& of) {
  if (!of.scales) {
    if (!of.type || *of.type == of.x.type()) return;
    throw ArgumentError(format("the result of grouped rows has their type, not {}: x is {}",
                               scalar_name(*of.type), of.x.identify()));
  }
  if (!is_float8(of.x.type()) || !is_float8(of.weights.type())) {
    throw ArgumentError(
        format("scale_a and scale_b are those of float8_e4m3fn and float8_e5m2: x is {}, weights "
               "are {}",
               of.x.identify(), of.weights.identify()));
  }
  require_grouped_device(of.x);
  const ScalarType out = grouped_result_type(of);
  if (!is_half(out) && out != ScalarType::float32) {
    throw ArgumentError(format("the result of this product is float16, bfloat16 or float32, not {}",
                               scalar_name(out)));
  }
  const Array &a = of.scales->x, &b = of.scales->weights;
  require_scale(a, "scale_a", of.x);
  require_scale(b, "scale_b", of.x);
  if (has_block_scales(of) || (is_of_rows(a, of.x) && is_of_columns(b, of.weights.shape()))) return;
  throw InvalidArgument(format(
      "Incompatible dimensions: scale_a is {} and scale_b {} for x of {} and weights of {}; scales "
      "are those of rows (one number, or one for each row of x; (groups,) or (groups, n)) or of "
      "blocks of 128: (..., rows, k / 128) and (groups, n / 128, k / 128), rounded up",
      shape_to_string(a.shape()), shape_to_string(b.shape()), shape_to_string(of.x.shape()),
      shape_to_string(of.weights.shape())));
}

[[noreturn]] void refuse_grouped(const GroupedGemm& of, const char* what) {
  throw InvalidArgument(
      format("Incompatible dimensions or types of a product of groups: x is {}, "
             "weights are {}; {}",
             of.x.identify(), of.weights.identify(), what));
}

}  // namespace

Shape check_grouped(const GroupedGemm& of) {
  require_one_device(of.x, "x", of.weights, "weights");
  if (!of.scales) require_grouped_type(of.x, "x");
  if (of.weights.ndim() != 3) refuse_grouped(of, "weights are (groups, n, k)");
  if (of.x.ndim() != 2 && of.x.ndim() != 3) refuse_grouped(of, "x has 2 dimensions or 3");
  const Shape& weights = of.weights.shape();
  if (!of.scales && of.weights.type() != of.x.type()) refuse_grouped(of, "both have one type");
  if (of.x.shape().back() != weights[2]) refuse_grouped(of, "their last extents must be equal");
  if (of.x.ndim() == 3 && of.x.shape()[0] != weights[0]) {
    refuse_grouped(of, "x has three dimensions, and the first is not that of the weights");
  }
  if (of.x.ndim() == 3 && of.groups.kind != RowGroups::Kind::counts) {
    refuse_grouped(of, "groups that lie apart are told by counts");
  }
  if (weights[0] == 0) refuse_grouped(of, "there is no group");
  require_groups(of.groups, weights[0], of.x);
  require_grouped_scales(of);
  if (of.bias) {
    require_one_device(*of.bias, "bias", of.x, "x");
    const ScalarType type = of.bias->type();
    const bool suits =
        of.scales ? is_half(type) || type == ScalarType::float32 : type == of.x.type();
    if (!suits || of.bias->shape() != Shape{weights[0], weights[1]}) {
      throw InvalidArgument(
          format("Incompatible dimensions or types: bias is {}, for weights that "
                 "are {}",
                 of.bias->identify(), of.weights.identify()));
    }
  }
  if (of.gate && (of.activation || weights[1] % 2 != 0)) {
    refuse_grouped(of, "a gate has an even n, and no activation beside it");
  }
  Shape shape = of.x.shape();
  shape.back() = of.gate ? weights[1] / 2 : weights[1];
  return shape;
}

void require_grouped_tiles(const GroupedGemm& of) {
  const bool of_blocks = has_block_scales(of);
  if (of.tile) require_gemm_tile(*of.tile, promotes_grouped(of), of_blocks);
  if (of.tile && of_blocks && of.tile->rows > 128) {
    throw ArgumentError(
        format("a tile of a product of groups with scales of blocks has 64 or 128 rows, not {}",
               of.tile->rows));
  }
  if (of.mma_tile) require_mma_tile(*of.mma_tile);
  if (of.fma_tile) require_fma_tile(*of.fma_tile, sizeof(float));
  const bool wide = of.x.type() == ScalarType::float32;
  if (wide ? of.tile || of.mma_tile || of.by_mma : of.fma_tile.has_value()) {
    throw ArgumentError(format("this tile is none of a product of groups of {}", of.x.identify()));
  }
}

}  // namespace kernwright::kernels
