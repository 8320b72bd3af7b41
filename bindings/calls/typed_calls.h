// Calls with arguments unfit for a function's parameters, told in the words of the caller.
#pragma once

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// Goes through all members of the module so far, once. Functions of pybind11: a call with wrong
/// arguments, and any plain TypeError, ValueError and OverflowError not raised by the user's code,
/// becomes the class of kernwright.errors derived from it. Classes: those without a constructor say
/// so, those without pickling say so in every protocol, and an object whose __init__ never ran
/// raises ArgumentError wherever it is used.
void type_calls(py::module_& m);

/// The type `_TypedFunction`, which wraps a function written in Python: it adds no frame and does
/// nothing to a call but the above.
void bind_typed_function(py::module_& m);

/// Replaces the pending error, if it is a plain TypeError, ValueError or OverflowError, by the
/// result of kernwright._support.calls.<helper>(*context, arguments, keywords, error), if there is
/// one. Arguments as in vectorcall.
void explain_failure(const char* helper, const py::tuple& context, PyObject* const* arguments,
                     std::size_t count, PyObject* keywords) noexcept;

}  // namespace kernwright::python
