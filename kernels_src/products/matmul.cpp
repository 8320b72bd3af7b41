// Plans a matrix product, and runs the plan: a skinny kernel, a Gemm, or the kernel of all types.
#include "kernels_src/products/matmul.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/gemm/gemm.h"
#include "kernels_src/matmul/matmul_batch.h"
#include "kernels_src/matmul/plain_matmul.h"
#include "kernels_src/products/few_rows.h"
#include "kernels_src/products/product_planner.h"

#include <array>

namespace kernwright::kernels {
namespace {

/// With the last two of two or three dimensions exchanged.
Array turned(const Array& array) {
  if (array.ndim() == 2) return array.transpose();
  std::vector<int> axes(array.shape().size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return array.transpose(axes);
}

ProductRequest matmul_request(const Array& a, const Array& b, FewRows form, bool tf32) {
  const bool exchanged = form == FewRows::column || form == FewRows::batch_columns;
  // (a @ b)^T = b^T @ a^T, whose few rows the tables know.
  ProductRequest request =
      exchanged ? product_request(turned(b), turned(a), a.type(), ProductUse::matrices)
                : product_request(a, b, a.type(), ProductUse::matrices);
  request.few = form != FewRows::none;
  request.skinny_only = exchanged;
  if (tf32 && !request.few) request.key.sums = ProductSums::tf32;
  return request;
}

Array multiply(const Array& a, const Array& b, bool tf32, const Stream& stream) {
  const FewRows form = few_rows_form(a, b);
  const ProductRequest request = matmul_request(a, b, form, tf32);
  const ProductPlan plan = plan_product(a.device(), request);
  if (const auto* few = std::get_if<SkinnyPlan>(&plan))
    return few_rows_product(a, b, form, *few, stream);
  const bool rounds = request.key.sums == ProductSums::tf32;
  if (!rounds && std::holds_alternative<PlainPlan>(plan)) return plain_matmul(a, b, stream);
  return Gemm{.a = a, .b = b, .type = a.type(), .tf32 = rounds, .plan = tile_plan(plan)}.run(
      stream);
}

}  // namespace

Array matmul(const Array& a, const Array& b, const Stream& stream) {
  require_product(a, b);
  return multiply(a, b, false, stream);
}

Array tf32_matmul(const Array& a, const Array& b, const Stream& stream) {
  require_product(a, b);
  if (a.type() != ScalarType::float32) {
    throw ArgumentError(format("tf32 is a precision of float32, not of {}", a.identify()));
  }
  return multiply(a, b, true, stream);
}

}  // namespace kernwright::kernels
