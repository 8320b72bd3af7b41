// The dimensions in front of a product's matrices.
#pragma once

#include "array/array.h"

#include <cstddef>
#include <cstdint>

namespace kernwright::kernels {

constexpr std::size_t kMaxBatchDims = 6;

/// The broadcast leading dimensions, the innermost first: extents, none of them 1, and strides in
/// bytes. `ProductBatch` of matmul.cu and of fma_gemm.cu has the same fields.
struct ProductBatch {
  std::int64_t extent[kMaxBatchDims] = {}, a[kMaxBatchDims] = {}, b[kMaxBatchDims] = {};
  std::int32_t ndim = 0;

  std::int64_t products() const noexcept;
  void drop_innermost() noexcept;
};

/// For a @ b. Neighbouring dimensions contiguous in both are merged. Throws InvalidArgument
/// ("Incompatible dimensions") if the leading dimensions do not broadcast, or are too many.
ProductBatch matrix_batch(const Array& a, const Array& b);

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
