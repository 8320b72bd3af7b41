// Broadcasting, and the order of dimensions.
#include "kernels_src/elementwise/layout.h"

#include "base/errors.h"
#include "base/format.h"

#include <algorithm>

namespace kernwright::kernels {

Shape broadcast_shape(std::span<const Array* const> arrays) {
  Shape shape = arrays.front()->shape();
  for (const Array* const each : arrays.subspan(1)) {
    const Shape& other = each->shape();
    if (other == shape) continue;
    Shape both(std::max(shape.size(), other.size()), 1);
    std::copy(shape.begin(), shape.end(), both.end() - static_cast<std::ptrdiff_t>(shape.size()));
    for (std::size_t i = 0; i < other.size(); ++i) {
      std::int64_t& extent = both[both.size() - other.size() + i];
      if (extent == 1) {
        extent = other[i];
      } else if (other[i] != 1 && other[i] != extent) {
        throw InvalidArgument(format(
            "Incompatible dimensions: {} and {} cannot be broadcast together; extents must be "
            "equal or 1, counted from the last axis",
            arrays.size() == 2 ? arrays[0]->identify()
                               : format("shape {} of the operands before", shape_to_string(shape)),
            each->identify()));
      }
    }
    shape = std::move(both);
  }
  return shape;
}

bool broadcasts_to(std::span<const std::int64_t> shape, std::span<const std::int64_t> target) {
  if (shape.size() > target.size()) return false;
  const std::size_t missing = target.size() - shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1 && shape[i] != target[missing + i]) return false;
  }
  return true;
}

Layout plan_layout(const Array& result, std::span<const Array* const> operands) {
  Layout layout;
  layout.base[0] = result.address();
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (operands[k] != nullptr) layout.base[k + 1] = operands[k]->address();
  }
  const std::size_t ndim = result.shape().size();
  for (std::size_t i = ndim; i-- > 0;) {
    const std::int64_t extent = result.shape()[i];
    if (extent == 1) continue;
    WalkDim<1 + kMaxOperands> dim{extent, {result.strides()[i]}};
    if (dim.stride[0] == 0) {
      throw InvalidArgument(
          format("cannot write to {}: it repeats elements (a stride of 0)", result.identify()));
    }
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (operands[k] == nullptr) continue;
      const std::size_t missing = ndim - operands[k]->shape().size();
      if (i < missing || operands[k]->shape()[i - missing] == 1) continue;
      dim.stride[k + 1] = operands[k]->strides()[i - missing];
    }
    layout.dims.push_back(dim);
  }
  // Neighbouring threads write neighbouring elements, whatever the order of the axes.
  order_dims(layout.dims, 0);
  return layout;
}

}  // namespace kernwright::kernels
