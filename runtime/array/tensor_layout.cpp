// Arrays as the tensors of tensor maps (core/image/tensor_map.h).
#include "array/tensor_layout.h"

namespace kernwright {

TensorLayout tensor_layout(const Array& array) {
  return {.address = array.address(),
          .data_type = tensor_map_data_type(array.type()),
          .shape = {array.shape().begin(), array.shape().end()},
          .strides = {array.strides().begin(), array.strides().end()},
          .owner = array.owner()};
}

}  // namespace kernwright
