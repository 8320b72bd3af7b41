// Schedulers for Python.
#pragma once

#include <pybind11/pybind11.h>

namespace kernwright::python {

void bind_schedule(pybind11::module_& m);  ///< schedulers and their tasks

}  // namespace kernwright::python
