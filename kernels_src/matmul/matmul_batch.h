// The dimensions in front of a product's matrices.
#pragma once

#include "array/array.h"

#include <cstddef>
#include <cstdint>

namespace kernwright::kernels {

constexpr std::size_t kMaxBatchDims = 6;

/// What is broadcast in front, the innermost dimension first: extents, none of them 1, and strides
/// in bytes. As in matmul.cu and fma_gemm.cu.
struct ProductBatch {
  std::int64_t extent[kMaxBatchDims] = {}, a[kMaxBatchDims] = {}, b[kMaxBatchDims] = {};
  std::int32_t ndim = 0;

  std::int64_t products() const noexcept;
  void drop_innermost() noexcept;
};

/// Of a @ b, where neighbours that follow each other in both are one. Throws InvalidArgument
/// ("Incompatible dimensions") where the dimensions in front do not broadcast, or are too many.
ProductBatch matrix_batch(const Array& a, const Array& b);

/// Throws InvalidArgument ("Incompatible dimensions") with both.
[[noreturn]] void refuse_matrix_shapes(const Array& a, const Array& b);

}  // namespace kernwright::kernels
