// The library's log as messages of Python's `logging`.
#pragma once

#include <pybind11/pybind11.h>

namespace kernwright::python {

/// Functions for kernwright._support.logger, which decides where messages go.
void bind_log(pybind11::module_& m);

}  // namespace kernwright::python
