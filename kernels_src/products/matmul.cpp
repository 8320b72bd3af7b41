// Chooses the family of a matrix product: a Gemm, a product of few rows, or the kernel of all
// types.
#include "kernels_src/products/matmul.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/gemm/fma/fma_gemm.h"
#include "kernels_src/gemm/gemm.h"
#include "kernels_src/gemm/mma/mma_gemm.h"
#include "kernels_src/gemm/product_choices.h"
#include "kernels_src/matmul/matmul_batch.h"
#include "kernels_src/matmul/plain_matmul.h"
#include "kernels_src/products/linear.h"

#include <optional>

namespace kernwright::kernels {
namespace {

constexpr double kLeastProducts = 1 << 20;  ///< of elements, that go to the tensor cores

bool is_large_product(const Array& a, const Array& b) {
  if (a.shape().back() == 0) return false;
  const auto rows = static_cast<double>(a.size()) / static_cast<double>(a.shape().back());
  return rows * static_cast<double>(b.size()) >= kLeastProducts;
}

}  // namespace

bool planned_tiles(const Array& a, const Array& b) {
  const auto plan = product_plan(a.device(), product_key(a, b, a.type()));
  return plan && plan->kernel != ProductKernel::skinny;
}

bool takes_tiles(const Array& a, const Array& b) {
  if (a.type() == ScalarType::float32) return has_fma(a);
  return has_fast_gemm(a, b) && is_large_product(a, b);
}

Array matmul(const Array& a, const Array& b, const Stream& stream) {
  require_product(a, b);
  if (planned_tiles(a, b)) return Gemm{.a = a, .b = b}.run(stream);
  if (const std::optional<Array> few = few_rows_product(a, b, stream)) return *few;
  if (takes_tiles(a, b) || has_fma(a)) return Gemm{.a = a, .b = b}.run(stream);
  if (a.type() == ScalarType::int8 && is_large_product(a, b) && has_mma(a)) {
    return Gemm{.a = a, .b = b, .type = ScalarType::int8}.run(stream);
  }
  return plain_matmul(a, b, stream);
}

Array tf32_matmul(const Array& a, const Array& b, const Stream& stream) {
  require_product(a, b);
  if (a.type() != ScalarType::float32) {
    throw ArgumentError(format("tf32 is a precision of float32, not of {}", a.identify()));
  }
  if (const std::optional<Array> few = few_rows_product(a, b, stream)) return *few;
  return Gemm{.a = a, .b = b, .tf32 = true}.run(stream);
}

}  // namespace kernwright::kernels
