// Checks a layer, plans its product and runs the plan.
#include "kernels_src/products/linear.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/gemm/gemm.h"
#include "kernels_src/gemv/skinny.h"
#include "kernels_src/operands.h"
#include "kernels_src/products/few_rows.h"
#include "kernels_src/products/matmul.h"
#include "kernels_src/products/product_planner.h"
#include "kernels_src/quantize/quantize.h"
#include "kernels_src/result_target.h"

#include <span>
#include <utility>

namespace kernwright::kernels {
namespace {

[[noreturn]] void refuse_linear(const LinearCall& call, const char* what) {
  throw InvalidArgument(
      format("Incompatible dimensions or dtypes for linear(): x is a {}, weight a {}; {}",
             call.x.identify(), call.weights.identify(), what));
}

/// What a layer makes, and the facts that decide how.
struct LinearFacts {
  Shape shape;        ///< of the result
  std::int64_t rows;  ///< of x, in all
  bool few;           ///< a skinny kernel may take them
};

LinearFacts check_linear(const LinearCall& call) {
  require_one_device(call.x, "x", call.weights, "weight");
  if (call.weights.ndim() != 2 || call.x.ndim() < 1)
    refuse_linear(call, "weight has 2 dimensions, x 1 or more");
  if (call.x.shape().back() != call.weights.shape()[1])
    refuse_linear(call, "their last dimensions must be equal");
  const ScalarType type = call.x.type(), weight = call.weights.type();
  const bool narrow = is_narrow_weight(weight), skinny = is_skinny_type(type);
  if (!skinny && type != ScalarType::float64)
    refuse_linear(call, "x must be float16, bfloat16, float32 or float64");
  if (weight != type && !(narrow && skinny))
    refuse_linear(
        call, "weight must have x's dtype, or be int8, float8_e4m3fn or float8_e5m2 with a scale");
  if (call.tf32 && type != ScalarType::float32)
    refuse_linear(call, "tf32 is a precision of float32");
  if (call.scale.has_value() != narrow)
    refuse_linear(call, "weights of 8 bits have a scale, others have none");
  if (call.epilogue.gate && call.weights.shape()[0] % 2 != 0)
    refuse_linear(call, "rows of weight are two operands of a gate, and their number is odd");
  require_layer_epilogue(call.epilogue, "linear()");
  const bool gated = call.epilogue.gate.has_value();
  Shape result = call.x.shape();
  const std::int64_t all = call.weights.shape()[0], k = result.back();
  result.back() = all;
  if (!gated || call.norm) require_linear_operands(call.x, call.epilogue, call.norm, result);
  result.back() = all / (gated ? 2 : 1);
  if (call.scale) {
    require_one_device(call.x, "x", *call.scale, "scale");
    const bool fits = call.scale->size() == 1 || call.scale->shape() == Shape{all};
    if (call.scale->type() != ScalarType::float32 || !fits)
      refuse_linear(call, "scale is float32 and has one number, or one a row");
  }
  const std::int64_t rows = element_count(std::span(result).first(result.size() - 1));
  const std::int64_t most = call.scale ? kSkinnyRows : most_skinny_rows(type);
  const bool few = skinny && (!gated || (call.norm && rows == 1)) && rows <= most &&
                   result.back() <= kMostSkinnyColumns && k <= kMostSkinnyInner;
  return {std::move(result), rows, few};
}

/// 8-bit weights times the scale, in x's type.
Array rounded_weights(const LinearCall& call, const Stream& stream) {
  const Array scale = call.scale->size() == 1 ? call.scale->reshape({}) : *call.scale;
  return dequantize_rows(call.weights, scale, call.x.type(), stream);
}

/// `out` where kernels can write there, as (rows, n). Throws InvalidArgument for one that does not
/// fit.
std::optional<Array> linear_target(const LinearCall& call, const Shape& shape, std::int64_t rows,
                                   const Stream& stream) {
  const ResultForm form{"linear", call.x.device(), shape, call.x.type()};
  std::optional<Array> target = direct_target(call.out, form, stream);
  require_apart(
      call.out, form,
      {{"x", &call.x}, {"weight", &call.weights}, {"scale", pointer_or_null(call.scale)}});
  require_apart(call.out, form, call.epilogue);
  if (target) target = target->reshape({rows, shape.back()});
  return target;
}

/// A layer and its operands as matrices, ready for the kernels.
struct LinearWork {
  const LinearCall& call;
  const Array& x;                      ///< (rows, k)
  const Array& weights;                ///< (n, k), of x's type unless a skinny kernel scales them
  const ProductEpilogue& epilogue;     ///< of (rows, n)
  const std::optional<Array>& target;  ///< (rows, n): memory of the result
  bool few;                            ///< a skinny kernel may take all rows
  const Stream& on;

  bool rounds() const { return call.tf32 && !few; }

  ProductRequest request() const {
    const Array b = weights.transpose();
    ProductRequest made = product_request(x, b, x.type(), ProductUse::layer);
    made.few = few;
    made.skinny_only = few && call.scale;
    made.adds = epilogue.residual.has_value();
    if (rounds()) made.key.accumulation = ProductAccumulation::tf32;
    if (!few && made.key.columns == 1) made.exchanged = exchanged_key(x, b, few_rows_form(x, b));
    return made;
  }

  Array by_tiles(const GemmPlan& plan) const {
    Gemm gemm{.a = x, .b = weights.transpose(), .epilogue = epilogue};
    gemm.tf32 = rounds();
    gemm.plan = plan;
    // A product must not overwrite a residual of which it still reads other elements.
    if (target && !may_overlap(*target, epilogue)) gemm.out = target;
    const ProductEpilogue rest = take_rest(gemm.epilogue);
    return run_rest(epilogue.gate ? run_gemm(gemm, on) : run_checked(gemm, on), rest, target, on);
  }

  /// A product, and a kernel for each step behind it.
  Array in_steps(const ProductPlan& plan) const {
    const Array product = run_plan(x, weights.transpose(), FewRows::column, plan, false, on);
    return run_rest(product, epilogue, target, on);
  }

  /// The norm by itself, then the others; a gate then takes tiles.
  Array run_behind_norm() const {
    LinearCall plain = call;
    plain.norm.reset();
    const Array normed = call.norm->normalised(x, on);
    return LinearWork{plain, normed, weights, epilogue, target, few && !epilogue.gate, on}.run();
  }

  /// By the plan for the request; nothing follows a Gemm of float64.
  Array run() const {
    if (call.norm && !few) return run_behind_norm();
    if (epilogue.gate && !few) return by_tiles({});
    const ProductPlan plan = plan_product(x.device(), request());
    const auto* const skinny = std::get_if<SkinnyPlan>(&plan);
    if (few && skinny != nullptr) {
      ProductEpilogue scaled = epilogue;
      scaled.column_scales = call.scale;
      return run_skinny({.x = x,
                         .weights = weights,
                         .epilogue = std::move(scaled),
                         .norm = call.norm,
                         .plan = *skinny,
                         .out = target},
                        {x.shape()[0], weights.shape()[0] / (epilogue.gate ? 2 : 1)}, on);
    }
    if (call.norm) return run_behind_norm();
    const bool plain = std::holds_alternative<PlainPlan>(plan) && !rounds();
    if (plain || skinny != nullptr || x.type() == ScalarType::float64) return in_steps(plan);
    return by_tiles(tile_plan(plan));
  }
};

}  // namespace

void require_linear_operands(const Array& x, const ProductEpilogue& epilogue,
                             const std::optional<RowNorm>& norm, const Shape& shape) {
  require_epilogue(epilogue, {.product = "linear()", .x = x, .result = shape, .type = x.type()});
  if (!norm) return;
  const Array& weight = norm->weight;
  require_one_device(x, "x", weight, "norm");
  if (weight.shape() == Shape{x.shape().back()} && weight.type() == x.type()) return;
  throw InvalidArgument(format(
      "Incompatible dimensions or dtypes for linear(): norm is a {}, and must be {} of shape ({},)",
      weight.identify(), scalar_name(x.type()), x.shape().back()));
}

Array linear(const LinearCall& call, const Stream& stream) {
  const auto [shape, rows, few] = check_linear(call);
  const std::int64_t k = call.x.shape().back(), n = shape.back();
  const bool is_matrix = call.x.ndim() == 2;
  // Most operands are taken as they are: a copy of an Array allocates its shape and strides.
  std::optional<Array> matrix, rounded, target;
  std::optional<ProductEpilogue> row_epilogue;
  if (!is_matrix) matrix = reshaped(call.x, {rows, k}, stream);
  if (!few && call.scale) rounded = rounded_weights(call, stream);
  if (!is_matrix) row_epilogue = epilogue_rows(call.epilogue, {rows, n}, stream);
  if (call.out) target = linear_target(call, shape, rows, stream);
  const Array& x = matrix ? std::as_const(*matrix) : call.x;
  const Array& weights = rounded ? std::as_const(*rounded) : call.weights;
  const ProductEpilogue& epilogue = row_epilogue ? std::as_const(*row_epilogue) : call.epilogue;
  Array result = LinearWork{call, x, weights, epilogue, target, few, stream}.run();
  if (!is_matrix || call.out) result = result.reshape(shape);
  if (call.out) return deliver(call.out, result, stream);
  return result;
}

}  // namespace kernwright::kernels
