// Python numbers as values of C++ (core/number.h).
#pragma once

#include "core/number.h"

#include <pybind11/pybind11.h>

namespace kernwright::python {

/// Reads a Python int, float, bool or complex, a NumPy or ml_dtypes scalar, a 0-d NumPy array, a
/// ctypes scalar, or an object with __index__. Allocates nothing for the first two families.
Number read_number(PyObject* value);

}  // namespace kernwright::python
