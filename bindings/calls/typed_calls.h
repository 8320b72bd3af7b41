// Calls that cannot be bound to a function's parameters, told in the words of whoever called.
#pragma once

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// Goes through all that the module has so far, once. Functions of pybind11: a call that does not
/// fit, and any plain TypeError, ValueError and OverflowError that no code of the user raised,
/// becomes the class of kernwright.errors that derives from it. Classes: who has no constructor
/// says so, who cannot be pickled says so in every protocol, and an object whose __init__ never ran
/// raises ArgumentError wherever it is used.
void type_calls(py::module_& m);

/// The type `_TypedFunction`, which wraps a function written in Python: it adds no frame and does
/// nothing to a call but the above.
void bind_typed_function(py::module_& m);

/// Replaces the error that is set, when it is a plain TypeError, ValueError or OverflowError, by
/// what kernwright._support.calls.<helper>(*context, arguments, keywords, error) returns, if
/// anything. Arguments as in vectorcall.
void explain_failure(const char* helper, const py::tuple& context, PyObject* const* arguments,
                     std::size_t count, PyObject* keywords) noexcept;

}  // namespace kernwright::python
