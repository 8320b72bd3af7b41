// How the elements of a result and of its operands are walked together.
#pragma once

#include "array/array.h"
#include "kernels_src/elementwise/operation.h"
#include "kernels_src/walk_plan.h"

#include <cstdint>
#include <span>

namespace kernwright::kernels {

/// The shape that all broadcast to. Throws InvalidArgument ("Incompatible dimensions") with both
/// shapes.
Shape broadcast_shape(std::span<const Array* const> arrays);
/// Whether `shape` broadcasts to `target` without changing it.
bool broadcasts_to(std::span<const std::int64_t> shape, std::span<const std::int64_t> target);

/// The result (0) and the operands (1 to 3); no array: 0 everywhere.
using Layout = WalkPlan<1 + kMaxOperands>;

/// `operands` broadcast to the shape of `result`; null: no array. Throws InvalidArgument when
/// `result` repeats elements (stride 0).
Layout plan_layout(const Array& result, std::span<const Array* const> operands);

}  // namespace kernwright::kernels
