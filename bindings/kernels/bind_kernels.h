// The parts that bind one family of the kernel library each. Their functions are private names of
// kernwright._core; the packages array, nn, random ... give them names, defaults and docstrings.
#pragma once

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

void bind_kernels(py::module_& m);  ///< all of those below

void bind_sort(py::module_& m);

}  // namespace kernwright::python
