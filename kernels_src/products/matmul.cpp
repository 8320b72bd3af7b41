// Plans a matrix product, and runs the plan: a skinny kernel, a Gemm, or the kernel of all types.
#include "kernels_src/products/matmul.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/gemm/gemm.h"
#include "kernels_src/matmul/matmul_batch.h"
#include "kernels_src/matmul/plain_matmul.h"
#include "kernels_src/products/product_planner.h"

namespace kernwright::kernels {

Array matmul(const Array& a, const Array& b, const Stream& stream, bool tf32) {
  require_product(a, b);
  if (tf32 && a.type() != ScalarType::float32)
    throw ArgumentError(format("tf32 is a precision of float32, not of {}", a.identify()));
  const FewRows form = few_rows_form(a, b);
  ProductRequest request = product_request(a, b, a.type(), ProductUse::matrices);
  request.few = form == FewRows::rows || form == FewRows::batch_rows;
  request.exchanged = exchanged_key(a, b, form);
  const bool rounds = tf32 && !request.few;
  if (rounds) request.key.accumulation = ProductAccumulation::tf32;
  return run_plan(a, b, form, plan_product(a.device(), request), rounds, stream);
}

Array run_plan(const Array& a, const Array& b, FewRows form, const ProductPlan& plan, bool tf32,
               const Stream& stream) {
  if (const auto* few = std::get_if<SkinnyPlan>(&plan))
    return few_rows_product(a, b, form, *few, stream);
  if (!tf32 && std::holds_alternative<PlainPlan>(plan)) return plain_matmul(a, b, stream);
  return run_checked({.a = a, .b = b, .type = a.type(), .tf32 = tf32, .plan = tile_plan(plan)},
                     stream);
}

}  // namespace kernwright::kernels
