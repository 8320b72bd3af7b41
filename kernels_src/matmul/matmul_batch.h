// The dimensions in front of a product's matrices.
#pragma once

#include "array/array.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernwright::kernels {

constexpr std::size_t kMaxBatchDims = 6;

/// A dimension of a batch: strides in bytes, 0 where all products have one operand.
struct BatchDim {
  std::int64_t extent = 1, a = 0, b = 0;
};
/// The dimensions in front of a result of `shape`, the innermost first, none of extent 1.
/// Neighbouring dimensions contiguous in both operands are merged.
std::vector<BatchDim> batch_dims(const Array& a, const Array& b, const Shape& shape);

/// The broadcast leading dimensions, the innermost first: extents, none of them 1, and strides in
/// bytes. `ProductBatch` of matmul.cu and of fma_gemm.cu has the same fields.
struct ProductBatch {
  std::int64_t extent[kMaxBatchDims] = {}, a[kMaxBatchDims] = {}, b[kMaxBatchDims] = {};
  std::int32_t ndim = 0;

  std::int64_t products() const noexcept;
  void drop_innermost() noexcept;
};

/// batch_dims() as kernels take them. Throws InvalidArgument if there are more than kMaxBatchDims.
ProductBatch matrix_batch(const Array& a, const Array& b, const Shape& shape);

/// The extent of the last axis (1), the one before it (2), ...; 1 where there is no such axis.
std::int64_t extent_from_end(const Array& array, int from_end) noexcept;
/// Bytes from one element to the next along such an axis.
std::int64_t stride_from_end(const Array& array, int from_end) noexcept;
/// stride_from_end(); 0 where the axis has one element or is none.
std::int64_t step_from_end(const Array& array, int from_end) noexcept;

/// The shape of a @ b. Throws InvalidArgument ("Incompatible dimensions") with both.
Shape product_shape(const Array& a, const Array& b);
/// Throws InvalidArgument unless a @ b has operands of one type and device whose dimensions fit.
void require_product(const Array& a, const Array& b);

/// Throws InvalidArgument ("Incompatible dimensions") with both.
[[noreturn]] void refuse_matrix_shapes(const Array& a, const Array& b);

}  // namespace kernwright::kernels
