// Arrays as the tensors of tensor maps (core/image/tensor_map.h).
#pragma once

#include "array/array.h"
#include "core/image/tensor_map.h"

namespace kernwright {

/// All of `array`; a map then keeps its memory alive. Throws InvalidArgument for an element type
/// without maps.
TensorLayout tensor_layout(const Array& array);

}  // namespace kernwright
