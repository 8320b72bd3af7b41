// Checks of scales, and what the kernels of a device make of them.
#include "kernels_src/gemm/grouped/grouped_scales.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/formats/formats.h"
#include "kernels_src/gemm/gemm_kernels.h"
#include "kernels_src/gemm/gemm_layout.h"
#include "kernels_src/gemm/grouped/grouped_rows.h"
#include "kernels_src/operands.h"

namespace kernwright::kernels {
namespace {

/// The shape of x with another last extent.
Shape lines_of(const Array& x, std::int64_t last) {
  Shape shape = x.shape();
  shape.back() = last;
  return shape;
}

bool is_of_rows(const Array& scale, const Array& x) {
  const Shape rows(x.shape().begin(), x.shape().end() - 1);
  return scale.size() == 1 || scale.shape() == rows || scale.shape() == lines_of(x, 1);
}

bool is_of_columns(const Array& scale, const Shape& weights) {
  const Shape &shape = scale.shape(), columns = {weights[0], weights[1]};
  return shape == Shape{weights[0]} || shape == columns ||
         shape == Shape{weights[0], weights[1], 1} || shape == Shape{weights[0], 1, 1};
}

/// (groups, n), of what is_of_columns() takes.
Array columns_of(const Array& scale, const Shape& weights, const Stream& on) {
  const Array dense = contiguous(scale, on);
  const std::int64_t each = dense.size() / weights[0];
  return contiguous(dense.reshape({weights[0], each}).broadcast({weights[0], weights[1]}), on);
}

void require_scale(const Array& scale, const char* name, const Array& x) {
  require_one_device(scale, name, x, "x");
  if (scale.type() != ScalarType::float32) {
    throw ArgumentError(format("{} is float32, not {}", name, scale.identify()));
  }
}

}  // namespace

bool has_block_scales(const GroupedGemm& of) {
  if (!of.scales) return false;
  const Shape& weights = of.weights.shape();
  const std::int64_t deep = grouped_parts(weights[2], kGemmBlock);
  return of.scales->x.shape() == lines_of(of.x, deep) &&
         of.scales->weights.shape() ==
             Shape{weights[0], grouped_parts(weights[1], kGemmBlock), deep};
}

void require_grouped_scales(const GroupedGemm& of) {
  if (!of.scales) {
    if (!of.type || *of.type == of.x.type()) return;
    throw ArgumentError(format("the result of grouped rows has their type, not {}: x is {}",
                               scalar_name(*of.type), of.x.identify()));
  }
  if (!is_gemm_float8(of.x.type()) || !is_gemm_float8(of.weights.type())) {
    throw ArgumentError(
        format("scale_a and scale_b are those of float8_e4m3fn and float8_e5m2: x is {}, weights "
               "are {}",
               of.x.identify(), of.weights.identify()));
  }
  require_grouped_device(of.x);
  const ScalarType out = grouped_result_type(of);
  if (!is_half_float(out) && out != ScalarType::float32) {
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
