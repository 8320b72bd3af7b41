// Broadcasts the dimensions in front and merges them.
#include "kernels_src/matmul/matmul_batch.h"

#include "base/errors.h"
#include "base/format.h"

#include <algorithm>
#include <utility>

namespace kernwright::kernels {

void refuse_matrix_shapes(const Array& a, const Array& b) {
  throw InvalidArgument(
      format("Incompatible dimensions for a matrix product: {} and {}; the last of the first must "
             "equal the one before the last of the second, and those in front must broadcast",
             a.identify(), b.identify()));
}

void require_product(const Array& a, const Array& b) {
  if (&a.device() != &b.device() || a.type() != b.type()) {
    throw InvalidArgument(format("a matrix product wants the same device and type: {} and {}",
                                 a.identify(), b.identify()));
  }
  if (a.ndim() < 2 || b.ndim() < 2 || a.shape().back() != extent_from_end(b, 2)) {
    refuse_matrix_shapes(a, b);
  }
}

std::int64_t extent_from_end(const Array& array, int from_end) noexcept {
  if (from_end > array.ndim()) return 1;
  return array.shape()[static_cast<std::size_t>(array.ndim() - from_end)];
}

std::int64_t stride_from_end(const Array& array, int from_end) noexcept {
  return array.strides()[static_cast<std::size_t>(array.ndim() - from_end)];
}

std::int64_t step_from_end(const Array& array, int from_end) noexcept {
  return extent_from_end(array, from_end) == 1 ? 0 : stride_from_end(array, from_end);
}

Shape product_shape(const Array& a, const Array& b) {
  if (a.ndim() < 2 || b.ndim() < 2 || extent_from_end(a, 1) != extent_from_end(b, 2)) {
    refuse_matrix_shapes(a, b);
  }
  Shape shape;
  for (int d = std::max(a.ndim(), b.ndim()); d >= 3; --d) {
    const std::int64_t left = extent_from_end(a, d), right = extent_from_end(b, d);
    if (left != right && left != 1 && right != 1) refuse_matrix_shapes(a, b);
    shape.push_back(left == 1 ? right : left);
  }
  shape.push_back(extent_from_end(a, 2));
  shape.push_back(extent_from_end(b, 1));
  return shape;
}

std::int64_t ProductBatch::products() const noexcept {
  std::int64_t all = 1;
  for (int d = 0; d < ndim; ++d) all *= extent[d];
  return all;
}

void ProductBatch::drop_innermost() noexcept {
  std::move(extent + 1, extent + ndim, extent);
  std::move(a + 1, a + ndim, a);
  std::move(b + 1, b + ndim, b);
  --ndim;
}

std::vector<BatchDim> batch_dims(const Array& a, const Array& b, const Shape& shape) {
  std::vector<BatchDim> dims;
  for (int d = 3; d <= static_cast<int>(shape.size()); ++d) {
    const BatchDim dim{shape[shape.size() - static_cast<std::size_t>(d)], step_from_end(a, d),
                       step_from_end(b, d)};
    if (dim.extent == 1) continue;
    if (!dims.empty()) {
      BatchDim& last = dims.back();
      if (dim.a == last.a * last.extent && dim.b == last.b * last.extent) {
        last.extent *= dim.extent;
        continue;
      }
    }
    dims.push_back(dim);
  }
  return dims;
}

ProductBatch matrix_batch(const Array& a, const Array& b, const Shape& shape) {
  const std::vector<BatchDim> dims = batch_dims(a, b, shape);
  if (dims.size() > kMaxBatchDims) {
    throw InvalidArgument(
        format("a matrix product of {} and {} has more than {} dimensions in "
               "front; reshape() them to fewer",
               a.identify(), b.identify(), kMaxBatchDims));
  }
  ProductBatch batch;
  batch.ndim = static_cast<std::int32_t>(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    batch.extent[d] = dims[d].extent;
    batch.a[d] = dims[d].a;
    batch.b[d] = dims[d].b;
  }
  return batch;
}

}  // namespace kernwright::kernels
