// Cuts operands down to two or three dimensions for skinny kernels.
#include "kernels_src/products/few_rows.h"

#include "kernels_src/gemv/skinny.h"
#include "kernels_src/matmul/matmul_batch.h"
#include "kernels_src/operands.h"
#include "kernels_src/products/product_planner.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kernwright::kernels {
namespace {

/// Elements of weights, below which the other kernels do as well.
constexpr std::int64_t kFewLinearElements = 16384;

/// Whether all dimensions in front are equal and can be one.
bool same_batches(const Array& a, const Array& b) {
  return a.ndim() == b.ndim() &&
         std::equal(a.shape().begin(), a.shape().end() - 2, b.shape().begin(), b.shape().end() - 2);
}

/// (batch, rows, columns) of a matrix for each product.
Shape batch_shape(const Array& array) {
  const Shape& shape = array.shape();
  const std::int64_t rows = shape[shape.size() - 2], columns = shape.back();
  return {rows * columns == 0 ? 0 : array.size() / (rows * columns), rows, columns};
}

bool is_batch_view(const Array& array) {
  const std::size_t size = scalar_size(array.type());
  return reshape_strides(array.shape(), array.strides(), batch_shape(array), size).has_value();
}

Array as_batch(const Array& array) {
  return array.ndim() == 3 ? array : array.reshape(batch_shape(array));
}

/// The last two of three dimensions exchanged.
Array turned_batch(const Array& array) { return array.transpose(std::array<int, 3>{0, 2, 1}); }

}  // namespace

FewRows few_rows_form(const Array& a, const Array& b) {
  if (!is_skinny_type(a.type()) || a.size() == 0 || b.size() == 0) return FewRows::none;
  const std::int64_t m = extent_from_end(a, 2), k = a.shape().back();
  const std::int64_t n = b.shape().back(), most = most_skinny_rows(a.type());
  if (k > kMostSkinnyInner || std::max(m, n) > kMostSkinnyColumns) return FewRows::none;
  const bool large = n * k >= kFewLinearElements;
  const bool column = n == 1 && m * k >= kFewLinearElements;
  if (b.ndim() == 2) {
    if (large && a.size() / k <= most) return FewRows::rows;
    return column && a.ndim() == 2 ? FewRows::column : FewRows::none;
  }
  const bool few = m <= most && large;
  if ((!few && !column) || !same_batches(a, b)) return FewRows::none;
  if (!is_batch_view(a) || !is_batch_view(b)) return FewRows::none;
  return few ? FewRows::batch_rows : FewRows::batch_columns;
}

std::optional<ProductKey> exchanged_key(const Array& a, const Array& b, FewRows form) {
  if (form == FewRows::column) return product_key(b.transpose(), a.transpose(), a.type());
  if (form != FewRows::batch_columns) return std::nullopt;
  return product_key(turned_batch(as_batch(b)), turned_batch(as_batch(a)), a.type());
}

Array few_rows_product(const Array& a, const Array& b, FewRows form, const SkinnyPlan& plan,
                       const Stream& stream) {
  const std::int64_t k = a.shape().back();
  const auto run = [&](const Array& x, const Array& weights) {
    Shape product = x.shape(), shape = a.shape();
    product.back() = extent_from_end(weights, 2);
    shape.back() = b.shape().back();
    return run_skinny({.x = x, .weights = weights, .plan = plan}, product, stream)
        .reshape(std::move(shape));
  };
  if (form == FewRows::rows) return run(reshaped(a, {a.size() / k, k}, stream), b.transpose());
  if (form == FewRows::column) return run(b.transpose(), a);
  const Array left = as_batch(a), right = as_batch(b);
  return form == FewRows::batch_rows ? run(left, turned_batch(right))
                                     : run(turned_batch(right), left);
}

}  // namespace kernwright::kernels
