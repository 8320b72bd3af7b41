// The parts of bind_memory(), and their shared declarations.
#pragma once

#include "memory/memory_resource.h"

#include <pybind11/pybind11.h>
#include <cstddef>
#include <memory>

namespace kernwright::python {

namespace py = pybind11;

void bind_resources(py::module_& m);        ///< resources, adaptors, the default of a device
void bind_memory_block(py::module_& m);     ///< alloc() and MemoryBlock
void bind_evictable(py::module_& m);        ///< buffers with leave to move to the host
void bind_torch_allocator(py::module_& m);  ///< the functions for torch's plug-in interface

/// An int of 0 ... 2^63 - 1; `what` names it in messages. Throws ArgumentError for anything else
/// than an int, InvalidArgument below 0, ArgumentRangeError above.
std::size_t bytes_argument(py::handle value, const char* what);

}  // namespace kernwright::python
