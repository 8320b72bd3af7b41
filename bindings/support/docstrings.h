// The texts of help() and inspect.signature() about the extension module.
#pragma once

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// Gives classes, methods, properties and functions of the module the docstrings and signatures of
/// its stubs (bindings/python/kernwright/_core*.pyi), from a table that the build makes of them.
void install_docstrings(py::module_& m);

}  // namespace kernwright::python
