// The products of matmul() that skinny kernels can take: few rows, or one column.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/plans/skinny_plan.h"
#include "kernels_src/products/product_key.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

/// How a @ b becomes rows of x times weights (n, k).
enum class FewRows : std::uint8_t {
  none,           ///< another kernel
  rows,           ///< all rows of a are x, b^T the weights
  column,         ///< the one column of b is the row of x, a the weights
  batch_rows,     ///< as rows, product by product
  batch_columns,  ///< as column, product by product
};

/// The form of a product whose operands have passed matmul()'s checks, of float16, bfloat16 or
/// float32 with large weights. Copies nothing.
FewRows few_rows_form(const Array& a, const Array& b);

/// The key of b^T @ a^T in the forms of one column; nothing in others.
std::optional<ProductKey> exchanged_key(const Array& a, const Array& b, FewRows form);

/// a @ b in a form other than none, by a skinny kernel.
Array few_rows_product(const Array& a, const Array& b, FewRows form, const SkinnyPlan& plan,
                       const Stream& stream);

}  // namespace kernwright::kernels
