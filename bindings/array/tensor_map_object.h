// Python's TensorMap: the map and its array.
#pragma once

#include "array/array.h"
#include "core/image/tensor_map.h"

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

struct TensorMapObject {
  TensorMap map;
  Array array;  ///< default-constructed when the map was made of a kw.Pointer
};

/// The TensorMapObject inside a Python object, or null when it is none.
TensorMapObject* find_tensor_map(PyObject* object) noexcept;

}  // namespace kernwright::python
