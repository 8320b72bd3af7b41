// Functions of arrays called with torch's tensors.
#pragma once

#include <pybind11/pybind11.h>

namespace kernwright::python {

void bind_tensor_call(pybind11::module_& m);

}  // namespace kernwright::python
