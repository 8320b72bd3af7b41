// The parts of Python's Kernel.report().
#pragma once

#include "bindings/launch/kernel_object.h"

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// The origin of the kernel's code for `device`, and its needs; compiles when there is none.
py::dict kernel_facts(KernelObject& kernel, const py::object& device);

/// A measured compile, as a dict; None for a kernel of object code: it has no source.
py::object kernel_profile(KernelObject& kernel, const py::object& device);

}  // namespace kernwright::python
