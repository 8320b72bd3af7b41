// The checks of a matrix product, before anything is queued.
#include "kernels_src/gemm/gemm_checks.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/operands.h"

namespace kernwright::kernels {
namespace {

/// int8 and float64 have only the plain product.
void require_product_alone(const Gemm& gemm, ScalarType type) {
  const ProductEpilogue& then = gemm.epilogue;
  const bool wide = gemm.a.type() == ScalarType::float64;
  if (wide ? type != gemm.a.type() : type != ScalarType::int32 && type != ScalarType::int8) {
    throw ArgumentError(format("the result of a product of {} is {}, not {}",
                               scalar_name(gemm.a.type()), wide ? "float64" : "int32 or int8",
                               scalar_name(type)));
  }
  if (then.bias || then.c || then.activation || then.gate || then.alpha != 1 || then.row_scales ||
      !then.expression.empty()) {
    throw ArgumentError(
        format("nothing follows a product of {}: no alpha, bias, c, scales, activation or gate",
               scalar_name(gemm.a.type())));
  }
}

/// Results of one byte are what an epilogue makes of accumulators.
void require_narrow_result(const Gemm& gemm, ScalarType type) {
  if (type != ScalarType::int8 && !is_float8(type)) {
    throw ArgumentError(
        format("the result of this product is float16, bfloat16, float32, float8_e4m3fn, "
               "float8_e5m2 or int8, not {}",
               scalar_name(type)));
  }
  if (gemm.epilogue.c || gemm.epilogue.gate) {
    throw ArgumentError(
        format("a result of {} has no c and no gate: c would be rounded to it", scalar_name(type)));
  }
}

void require_scale(const Array& scales, const char* name, const Array& operand,
                   const Shape& wanted) {
  require_one_device(scales, name, operand, "what they belong to");
  if (scales.type() != ScalarType::float32) {
    throw ArgumentError(format("{} are float32, not {}", name, scales.identify()));
  }
  if (scales.shape() == wanted || (wanted.size() == 1 && scales.size() == 1)) return;
  throw InvalidArgument(format("Incompatible dimensions: {} are {}, and must be of {} for {}", name,
                               scales.identify(), shape_to_string(wanted), operand.identify()));
}

/// Checks the scales of rows and columns, or of blocks.
void require_scales(const Gemm& gemm) {
  const ProductEpilogue& then = gemm.epilogue;
  if (!then.row_scales && !then.column_scales && !gemm.block_scales) return;
  if (then.row_scales.has_value() != then.column_scales.has_value() ||
      (then.row_scales && gemm.block_scales) || then.gate || gemm.a.ndim() != 2 ||
      gemm.b.ndim() != 2) {
    throw ArgumentError(
        "scales are those of rows and columns, or of blocks, of a product of two "
        "matrices without a gate");
  }
  const std::int64_t rows = gemm.a.shape()[0], inner = gemm.a.shape()[1],
                     columns = gemm.b.shape()[1];
  if (then.row_scales) {
    require_scale(*then.row_scales, "scales of rows", gemm.a, {rows});
    require_scale(*then.column_scales, "scales of columns", gemm.b, {columns});
    return;
  }
  const auto blocks = [](std::int64_t extent) { return ceil_div(extent, kGemmBlock); };
  if (!is_float8(gemm.a.type())) {
    throw ArgumentError(format("scales of blocks are of float8, not of {}", gemm.a.identify()));
  }
  require_scale(gemm.block_scales->a, "scales of a's blocks", gemm.a, {rows, blocks(inner)});
  require_scale(gemm.block_scales->b, "scales of b's blocks", gemm.b,
                {blocks(inner), blocks(columns)});
}

void require_splits(int splits) {
  if (splits < 0) throw ArgumentError(format("splits are 1 or more, not {}", splits));
}

void require_plan(const Gemm& gemm) {
  if (const auto* wgmma = std::get_if<WgmmaPlan>(&gemm.plan)) {
    if (wgmma->tile)
      require_gemm_tile(*wgmma->tile, is_promoted(gemm), gemm.block_scales.has_value());
    require_splits(wgmma->splits);
  } else if (const auto* mma = std::get_if<MmaPlan>(&gemm.plan)) {
    if (mma->tile) require_mma_tile(*mma->tile);
    require_splits(mma->splits);
  } else if (const auto* fma = std::get_if<FmaPlan>(&gemm.plan)) {
    if (fma->tile) require_fma_tile(*fma->tile, scalar_size(gemm.a.type()));
    require_splits(fma->splits);
  }
}

}  // namespace

void require_gemm(const Gemm& gemm, ScalarType type) {
  const bool both_float8 = is_float8(gemm.a.type()) && is_float8(gemm.b.type());
  if (&gemm.a.device() != &gemm.b.device() || (gemm.a.type() != gemm.b.type() && !both_float8)) {
    throw InvalidArgument(format("a matrix product wants the same device and type: {} and {}",
                                 gemm.a.identify(), gemm.b.identify()));
  }
  require_scales(gemm);
  const bool is_tf32 = gemm.a.type() == ScalarType::float32 && gemm.tf32;
  if (gemm.tf32 && !is_tf32) {
    throw ArgumentError(format("tf32 is a precision of float32, not of {}", gemm.a.identify()));
  }
  const bool is_whole = gemm.a.type() == ScalarType::int8;
  if (gemm.a.type() == ScalarType::float64 || (is_whole && !gemm.epilogue.row_scales)) {
    require_product_alone(gemm, type);
  } else if (!is_half(gemm.a.type()) && !is_float8(gemm.a.type()) && !is_whole &&
             gemm.a.type() != ScalarType::float32) {
    throw ArgumentError(
        format("this product takes float16 or bfloat16, float8, int8, float32 and float64, not {}; "
               "matmul() takes all",
               gemm.a.identify()));
  } else if (!is_half(type) && type != ScalarType::float32) {
    require_narrow_result(gemm, type);
  }
  require_plan(gemm);
}

void require_gated(const Gemm& gemm, const Shape& shape) {
  if (gemm.epilogue.c || gemm.epilogue.activation) {
    throw ArgumentError("a gated product has neither c nor an activation beside its gate");
  }
  if (shape.back() % 2 != 0) {
    throw InvalidArgument(format(
        "Incompatible dimensions: the columns of {} are two operands of a gate, and their number "
        "is odd",
        gemm.b.identify()));
  }
  const auto* const wgmma = std::get_if<WgmmaPlan>(&gemm.plan);
  const bool has_tile = wgmma != nullptr && wgmma->tile;
  if (!has_tile || wgmma->tile->columns % 128 == 0) return;
  if (gemm.a.device().capabilities().wgmma && !fuses_gate(gemm)) return;
  throw ArgumentError(
      format("a tile of a gated product has 128 or 256 columns, not {}", wgmma->tile->columns));
}

}  // namespace kernwright::kernels
