// Arrays as the tensors of tensor maps (core/image/tensor_map.h).
#pragma once

#include "array/array.h"
#include "core/image/tensor_map.h"

namespace kernwright {

/// All of `array`, whose memory a map then keeps alive. Throws InvalidArgument for an element type
/// that no map has.
TensorLayout tensor_layout(const Array& array);

}  // namespace kernwright
