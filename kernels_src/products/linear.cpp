// Checks a layer, plans its product and runs the plan.
#include "kernels_src/products/linear.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/elementwise/elementwise.h"
#include "kernels_src/gemm/gemm.h"
#include "kernels_src/gemv/skinny.h"
#include "kernels_src/matmul/plain_matmul.h"
#include "kernels_src/operands.h"
#include "kernels_src/products/few_rows.h"
#include "kernels_src/products/product_planner.h"
#include "kernels_src/quantize/quantize.h"
#include "kernels_src/result_target.h"

#include <array>
#include <span>
#include <utility>

namespace kernwright::kernels {
namespace {

[[noreturn]] void refuse_linear(const LinearCall& call, const char* what) {
  throw InvalidArgument(
      format("Incompatible dimensions or dtypes for linear(): x is a {}, weight a {}; {}",
             call.x.identify(), call.weights.identify(), what));
}

constexpr std::int64_t kMostSkinnyColumns = std::int64_t{1} << 25;

/// The shape of the result.
Shape check_linear(const LinearCall& call) {
  require_one_device(call.x, "x", call.weights, "weight");
  if (call.weights.ndim() != 2 || call.x.ndim() < 1)
    refuse_linear(call, "weight has 2 dimensions, x 1 or more");
  if (call.x.shape().back() != call.weights.shape()[1])
    refuse_linear(call, "their last dimensions must be equal");
  const ScalarType type = call.x.type(), weight = call.weights.type();
  if (!is_skinny_type(type) && type != ScalarType::float64)
    refuse_linear(call, "x must be float16, bfloat16, float32 or float64");
  const bool narrow = is_narrow_weight(weight);
  if (weight != type && !(narrow && is_skinny_type(type)))
    refuse_linear(
        call, "weight must have x's dtype, or be int8, float8_e4m3fn or float8_e5m2 with a scale");
  if (call.tf32 && type != ScalarType::float32)
    refuse_linear(call, "tf32 is a precision of float32");
  if (call.scale.has_value() != narrow)
    refuse_linear(call, "weights of 8 bits have a scale, others have none");
  Shape result = call.x.shape();
  const std::int64_t n = result.back() = call.weights.shape()[0] / (call.gate ? 2 : 1);
  if (!call.gate) require_like_linear_result(call.x, call.bias, "bias", {n});
  require_like_linear_result(call.x, call.residual, "residual", result);
  if (call.scale && call.scale->size() != 1 && call.scale->shape() != Shape{n})
    refuse_linear(call, "scale has one number, or one a row");
  return result;
}

/// The weights in x's type: 8-bit weights times the scale.
Array rounded_weights(const LinearCall& call, const Stream& stream) {
  if (!call.scale) return call.weights;
  const Array scale = call.scale->size() == 1 ? call.scale->reshape({}) : *call.scale;
  return dequantize_rows(call.weights, scale, call.x.type(), stream);
}

/// a + b, in `out` where that is given.
Array add_to_linear(const Array& a, const Array& b, const Stream& stream,
                    const std::optional<Array>& out = {}) {
  const std::array<Operand, 2> operands = {Operand{&a}, Operand{&b}};
  if (!out) return elementwise(Operation::add, operands, stream);
  elementwise_into(*out, Operation::add, operands, stream);
  return *out;
}

/// `out` where kernels can write there. Throws InvalidArgument for one that does not fit.
std::optional<Array> linear_target(const LinearCall& call, const Shape& shape,
                                   const Stream& stream) {
  const ResultForm form{"linear", call.x.device(), shape, call.x.type()};
  std::optional<Array> target = direct_target(call.out, form, stream);
  require_apart(call.out, form,
                {{"x", &call.x},
                 {"weight", &call.weights},
                 {"bias", pointer_of(call.bias)},
                 {"scale", pointer_of(call.scale)}});
  require_apart_or_same(call.out, form, {{"residual", pointer_of(call.residual)}});
  return target;
}

/// A layer with its operands as matrices, which run() hands over to the kernels.
struct LinearWork {
  const LinearCall& call;
  Array x;                        ///< (rows, k)
  Array weights;                  ///< (n, k), of x's type unless a skinny kernel scales them
  std::optional<Array> residual;  ///< (rows, n)
  std::optional<Array> target;    ///< (rows, n): memory of the result
  const Stream& on;

  Array by_skinny_kernel(const SkinnyPlan& plan) {
    return skinny_product({.x = std::move(x),
                           .weights = std::move(weights),
                           .scale = call.scale,
                           .bias = call.bias,
                           .residual = std::move(residual),
                           .activation = call.activation,
                           .plan = plan,
                           .out = std::move(target)},
                          on);
  }

  /// One kernel, unless a residual comes behind an activation.
  Array by_tiles(const GemmPlan& plan, bool tf32) {
    const bool adds_last = residual && call.activation;
    Gemm gemm{.a = std::move(x), .b = weights.transpose(), .tf32 = tf32};
    // A product must not overwrite a residual of which it still reads other elements.
    if (target && !(residual && may_overlap(*target, *residual))) gemm.out = target;
    gemm.epilogue.bias = call.bias;
    gemm.epilogue.activation = call.activation;
    gemm.epilogue.gate = call.gate;
    if (!adds_last) gemm.epilogue.c = std::move(residual);
    gemm.plan = call.gate ? plan_gemm(gemm) : plan;
    const Array result = gemm.run(on);
    return adds_last ? add_to_linear(result, *residual, on, target) : result;
  }

  Array product(const GemmPlan& plan) const {
    const Array b = weights.transpose();
    if (!std::holds_alternative<PlainPlan>(plan)) return Gemm{.a = x, .b = b, .plan = plan}.run(on);
    if (few_rows_form(x, b) == FewRows::column)
      return few_rows_product(x, b, FewRows::column, SkinnyPlan{}, on);
    return plain_matmul(x, b, on);
  }

  /// A product, and a kernel for each step behind it.
  Array in_steps(const GemmPlan& plan) {
    Array result = product(plan);
    if (call.bias && call.activation) {
      result = bias_activate(*call.activation, result, *call.bias, on);
    } else if (call.bias) {
      result = add_to_linear(result, *call.bias, on);
    } else if (call.activation) {
      result = activate(*call.activation, result, on);
    }
    return residual ? add_to_linear(result, *residual, on, target) : result;
  }

  /// By the plan for the request; nothing follows a Gemm of float64.
  Array run(bool few) {
    if (call.gate) return by_tiles({}, call.tf32);
    ProductRequest request = product_request(x, weights.transpose(), x.type(), ProductUse::layer);
    request.few = few;
    request.skinny_only = few && call.scale;
    request.adds = residual.has_value();
    const bool tf32 = call.tf32 && !few;
    if (tf32) request.key.sums = ProductSums::tf32;
    const ProductPlan plan = plan_product(x.device(), request);
    if (const auto* skinny = std::get_if<SkinnyPlan>(&plan)) return by_skinny_kernel(*skinny);
    const bool steps = std::holds_alternative<PlainPlan>(plan) && !tf32;
    if (steps || x.type() == ScalarType::float64) return in_steps(tile_plan(plan));
    return by_tiles(tile_plan(plan), tf32);
  }
};

}  // namespace

void require_like_linear_result(const Array& x, const std::optional<Array>& extra, const char* name,
                                const Shape& shape) {
  if (!extra) return;
  require_one_device(x, "x", *extra, name);
  if (extra->shape() == shape && extra->type() == x.type()) return;
  throw InvalidArgument(format(
      "Incompatible dimensions or dtypes for linear(): {} is a {}, and must be {} of shape {}",
      name, extra->identify(), scalar_name(x.type()), shape_to_string(shape)));
}

Array linear(const LinearCall& call, const Stream& stream) {
  const Shape shape = check_linear(call);
  const std::int64_t k = call.x.shape().back(), n = shape.back();
  const std::int64_t rows = element_count(std::span(shape).first(shape.size() - 1));
  std::optional<Array> target = linear_target(call, shape, stream);
  if (target) target = target->reshape({rows, n});
  const std::int64_t most = call.scale ? kSkinnyRows : most_skinny_rows(call.x.type());
  const bool few =
      !call.gate && rows <= most && is_skinny_type(call.x.type()) && n <= kMostSkinnyColumns;
  LinearWork work{.call = call,
                  .x = reshaped_for_rows(call.x, {rows, k}, stream),
                  .weights = few ? call.weights : rounded_weights(call, stream),
                  .residual = {},
                  .target = std::move(target),
                  .on = stream};
  if (call.residual) work.residual = reshaped_for_rows(*call.residual, {rows, n}, stream);
  return deliver(call.out, work.run(few).reshape(shape), stream);
}

}  // namespace kernwright::kernels
