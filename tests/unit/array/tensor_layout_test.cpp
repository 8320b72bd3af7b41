// Arrays as tensors: the layout for a map, and the lifetime of their memory.
#include "array/tensor_layout.h"

#include "base/errors.h"
#include "unit/core/test_device.h"

#include <doctest/doctest.h>

using namespace kernwright;
using namespace kernwright::testing;

TEST_CASE("tensor layout: address, type, shape and strides are those of the array") {
  const Recorded recorded;
  const Array whole = Array::empty(recorded.device, {6, 10, 16}, ScalarType::bfloat16);
  const Array part = whole.slice(1, 2, 4, 2);
  const TensorLayout tensor = tensor_layout(part);
  CHECK(tensor.address == whole.address() + 2 * 32);
  CHECK(tensor.data_type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  CHECK(tensor.shape == std::vector<std::int64_t>{6, 4, 16});
  CHECK(tensor.strides == std::vector<std::int64_t>{320, 64, 2});
}

TEST_CASE("tensor layout: holds the array's memory") {
  const Recorded recorded;
  TensorLayout tensor;
  std::weak_ptr<void> memory;
  {
    const Array array = Array::empty(recorded.device, {8}, ScalarType::int8);
    memory = array.owner();
    tensor = tensor_layout(array);
  }
  CHECK_FALSE(memory.expired());
  tensor = {};
  CHECK(memory.expired());
  const Array complex = Array::empty(recorded.device, {8}, ScalarType::complex64);
  CHECK_THROWS_AS(tensor_layout(complex), InvalidArgument);
}
