// Checks the kinds of scales, and runs the product.
#include "kernels_src/products/scaled_matmul.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/operands.h"
#include "kernels_src/products/product_planner.h"

#include <utility>

namespace kernwright::kernels {
namespace {

void require_scaled(const ScaledMatmul& call) {
  const bool whole = call.a.type() == ScalarType::int8 && call.b.type() == ScalarType::int8;
  if (!whole && !(is_float8(call.a.type()) && is_float8(call.b.type()))) {
    throw ArgumentError(
        format("scaled_matmul() takes float8_e4m3fn and float8_e5m2, or two of int8, not {} and {}",
               call.a.identify(), call.b.identify()));
  }
  require_one_device(call.a, "a", call.b, "b");
  if (call.a.ndim() < 2 || call.b.ndim() != 2 || call.a.shape().back() != call.b.shape()[0]) {
    throw InvalidArgument(
        format("Incompatible dimensions for scaled_matmul(): a is {} and b {}; "
               "they must be of (..., m, k) and (k, n)",
               call.a.identify(), call.b.identify()));
  }
}

/// The shape that the rows of all of a's matrices have, with other columns.
Shape rows_by(const Array& a, std::int64_t columns) {
  Shape shape(a.shape().begin(), a.shape().end() - 1);
  shape.push_back(columns);
  return shape;
}

[[noreturn]] void refuse_scales(const ScaledMatmul& call) {
  throw InvalidArgument(format(
      "Incompatible dimensions for scaled_matmul(): scale_a is {} and scale_b {} for a of {} "
      "and b of {}; scales are one number, one for each row of a (each column of b), or of "
      "blocks of 128: (..., m, k / 128) and (k / 128, n / 128), rounded up",
      shape_to_string(call.a_scales.shape()), shape_to_string(call.b_scales.shape()),
      shape_to_string(call.a.shape()), shape_to_string(call.b.shape())));
}

/// One number, or one for each row (column).
bool scales_lines(const ScaledMatmul& call) {
  const Shape row_shape(call.a.shape().begin(), call.a.shape().end() - 1);
  const Shape &a = call.a_scales.shape(), &b = call.b_scales.shape();
  const std::int64_t columns = call.b.shape()[1];
  const bool fits_a = call.a_scales.size() == 1 || a == row_shape || a == rows_by(call.a, 1);
  const bool fits_b = call.b_scales.size() == 1 || b == Shape{columns} || b == Shape{1, columns};
  return fits_a && fits_b;
}

bool scales_blocks(const ScaledMatmul& call) {
  const auto blocks = [](std::int64_t extent) { return ceil_div(extent, 128); };
  const std::int64_t deep = blocks(call.b.shape()[0]);
  return call.a_scales.shape() == rows_by(call.a, deep) &&
         call.b_scales.shape() == Shape{deep, blocks(call.b.shape()[1])};
}

}  // namespace

Array scaled_matmul(const ScaledMatmul& call, const Stream& stream) {
  require_scaled(call);
  for (const Array* scales : {&call.a_scales, &call.b_scales}) {
    if (scales->type() != ScalarType::float32) {
      throw ArgumentError(format("scales are float32, not {}", scales->identify()));
    }
  }
  const Shape shape = rows_by(call.a, call.b.shape()[1]);
  const std::int64_t inner = call.b.shape()[0];
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  // Rows of all matrices become rows of one.
  const auto as_rows = [&](const Array& array, std::int64_t columns) {
    return reshaped(array, {rows, columns}, stream);
  };
  Gemm gemm{.a = as_rows(call.a, inner), .b = call.b};
  gemm.epilogue.bias = call.bias;
  gemm.type = call.type;
  gemm.fast_accum = call.fast_accum;
  if (scales_lines(call)) {
    gemm.epilogue.row_scales = contiguous(call.a_scales, stream).reshape({call.a_scales.size()});
    gemm.epilogue.column_scales = contiguous(call.b_scales, stream).reshape({call.b_scales.size()});
  } else if (scales_blocks(call)) {
    const std::int64_t deep = call.b_scales.shape()[0];
    gemm.block_scales = GemmBlockScales{as_rows(call.a_scales, deep), call.b_scales};
  } else {
    refuse_scales(call);
  }
  return run_gemm(gemm, stream).reshape(shape);
}

}  // namespace kernwright::kernels
