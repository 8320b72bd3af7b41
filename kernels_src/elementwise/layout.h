// How the elements of a result and of its operands are walked together.
#pragma once

#include "array/array.h"
#include "kernels_src/elementwise/operation.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace kernwright::kernels {

/// The shape that all broadcast to. Throws InvalidArgument ("Incompatible dimensions") with both
/// shapes.
Shape broadcast_shape(std::span<const Array* const> arrays);
/// Whether `shape` broadcasts to `target` without changing it.
bool broadcasts_to(std::span<const std::int64_t> shape, std::span<const std::int64_t> target);

/// One dimension of the result (0) and the operands (1 to 3); strides in bytes.
struct LayoutDim {
  std::int64_t extent = 0;
  std::array<std::int64_t, 1 + kMaxOperands> strides{};
};

/// The walk: dimensions from the innermost on, those that follow each other everywhere made one.
/// No dimension: one element.
struct Layout {
  std::vector<LayoutDim> dims;
  std::int64_t count() const noexcept;
};

/// `operands` broadcast to the shape of `result`; null: no array. Throws InvalidArgument when
/// `result` repeats elements (stride 0).
Layout plan_layout(const Array& result, std::span<const Array* const> operands);

}  // namespace kernwright::kernels
