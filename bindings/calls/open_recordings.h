// The recordings that are open in each thread, and what operations write into them.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>

namespace kernwright::python {

namespace py = pybind11;

/// Whether an open recording of this thread has to know of a call with these arguments: one of
/// them, or of the members of lists and tuples among them, has a gradient, or memory of it was
/// written through another array.
bool concerns_recordings(PyObject* const* arguments, std::size_t count);

/// Records an operation with one result in all open recordings of this thread. `pairs`: an iterable
/// of operands and their pullbacks; operands that no recording knows are constants. Throws
/// InvalidArgument where memory of an operand was written through another array.
void note(PyObject* name, PyObject* pairs, PyObject* result);

/// The same with a pullback that takes the gradients of all `results` (None: not needed further on)
/// and returns those of all `operands`.
void note_joint(PyObject* name, PyObject* operands, PyObject* results, PyObject* pullback);

void bind_open_recordings(py::module_& m);

}  // namespace kernwright::python
