// Arrays of 0, 1, 2, ... in order, and reading them back.
#pragma once

#include "array/array.h"

#include <cstddef>
#include <numeric>
#include <vector>

namespace kernwright::testing {

inline Array make(Device& device, const Shape& shape) {
  std::vector<int> data(static_cast<std::size_t>(element_count(shape)));
  std::iota(data.begin(), data.end(), 0);
  return Array::from_host(device, data.data(), shape, ScalarType::int32);
}

inline std::vector<int> read(const Array& array) {
  std::vector<int> data(static_cast<std::size_t>(array.size()), -1);
  array.to_host(data.data());
  return data;
}

}  // namespace kernwright::testing
