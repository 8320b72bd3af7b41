// Layers with packed weights: checks, the plan, and the way by weights as numbers.
#include "kernels_src/products/packed_linear.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/operands.h"
#include "kernels_src/packed/packed_product.h"
#include "kernels_src/products/linear.h"
#include "kernels_src/products/product_planner.h"
#include "kernels_src/result_target.h"

#include <algorithm>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kPackedSlabBytes = std::int64_t{128} << 20;  ///< of weights as numbers

/// The request of x's rows times the transposed weights.
ProductRequest packed_request(const PackedLinearCall& call, std::int64_t rows) {
  const PackedWeights& w = call.weights;
  const ScalarType type = call.x.type();
  const ProductKey key{.a = type,
                       .b = type,
                       .out = type,
                       .b_turned = true,
                       .rows = rows,
                       .columns = w.n,
                       .inner = w.k};
  return {.key = key, .packed = &w, .packed_wanted = call.plan, .use = ProductUse::layer};
}

/// By numbers of x's type, at most kPackedSlabBytes of them at a time.
Array packed_by_numbers(const PackedLinearCall& call, const Shape& shape, const Stream& on) {
  const PackedWeights& w = call.weights;
  const std::int64_t bytes =
      std::max<std::int64_t>(1, w.k) * static_cast<std::int64_t>(scalar_size(call.x.type()));
  const std::int64_t each = std::max<std::int64_t>(256, kPackedSlabBytes / bytes / 256 * 256);
  std::optional<Array> whole;
  if (w.n > each)
    whole = call.out ? *call.out : Array::empty(call.x.device(), shape, call.x.type(), on);
  for (std::int64_t first = 0; first < w.n; first += each) {
    const std::int64_t end = std::min(w.n, first + each);
    LinearCall part{.x = call.x, .weights = unpack_weights(w, first, end, call.x.type(), on)};
    part.epilogue = epilogue_columns(call.epilogue, first, end - first);
    part.out = whole ? whole->slice(whole->ndim() - 1, first, end - first, 1) : call.out;
    const Array made = linear(part, on);
    if (!whole) return made;
  }
  return *whole;
}

/// `out` where kernels can write there. Throws InvalidArgument for one that does not fit.
std::optional<Array> packed_target(const PackedLinearCall& call, const Shape& shape,
                                   const Stream& on) {
  const ResultForm form{"linear", call.x.device(), shape, call.x.type()};
  std::optional<Array> target = direct_target(call.out, form, on);
  require_apart(call.out, form,
                {{"x", &call.x}, {"norm", call.norm ? &call.norm->weight : nullptr}});
  require_apart(call.out, form, call.epilogue);
  for (const auto& part : call.weights.parts) {
    require_apart(call.out, form, {{"weight", pointer_or_null(part)}});
  }
  return target;
}

}  // namespace

Array packed_linear(const PackedLinearCall& call, const Stream& stream) {
  const PackedWeights& w = call.weights;
  check_packed(w);
  require_one_device(call.x, "x", *w.parts[0], "weight");
  const ScalarType type = call.x.type();
  if (!is_skinny_type(type))
    throw InvalidArgument(
        format("x of a product with packed weights is float16, bfloat16 or "
               "float32, not {}",
               call.x.identify()));
  if (call.x.ndim() < 1 || call.x.shape().back() != w.k)
    throw InvalidArgument(
        format("Incompatible dimensions for linear(): x is a {}, weight has the "
               "shape ({}, {}); their last dimensions must be equal",
               call.x.identify(), w.n, w.k));
  Shape shape = call.x.shape();
  shape.back() = w.n;
  require_layer_epilogue(call.epilogue, "linear()");
  require_linear_operands(call.x, call.epilogue, call.norm, shape);
  const Stream on = stream ? stream : Stream::legacy(call.x.device());
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
  const bool gated = call.epilogue.gate.has_value();
  Shape result_shape = shape;
  if (gated) result_shape.back() /= 2;
  std::optional<Array> target = packed_target(call, result_shape, on);
  if (rows * w.n == 0) {
    return call.out ? *call.out : Array::empty(call.x.device(), result_shape, type, on);
  }
  const ProductPlan plan = plan_product(call.x.device(), packed_request(call, rows));
  const auto* const packed = std::get_if<PackedPlan>(&plan);
  const bool norms = packed != nullptr && applies_packed_norm(call, rows, packed->kernel);
  if ((call.norm && !norms) || (gated && !(norms && applies_packed_gate(call, packed->kernel)))) {
    PackedLinearCall plain = call;
    const ProductEpilogue rest = take_gate(plain.epilogue);
    if (gated) plain.out.reset();  // the gate halves the product
    if (call.norm && !norms) {
      plain.x = std::exchange(plain.norm, std::nullopt)->normalised(call.x, on);
    }
    const Array made = run_rest(packed_linear(plain, stream), rest, {}, on);
    return gated ? deliver(call.out, made, on) : made;
  }
  if (packed == nullptr) return packed_by_numbers(call, shape, on);
  if (target) target = target->reshape({rows, result_shape.back()});
  const Array result = packed_product(call, rows, packed->kernel, target, on);
  return deliver(call.out, result.reshape(std::move(result_shape)), on);
}

}  // namespace kernwright::kernels
