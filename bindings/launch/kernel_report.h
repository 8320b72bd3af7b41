// What Python's Kernel.report() is made of.
#pragma once

#include "bindings/launch/kernel_object.h"

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// Where the kernel's code for `device` came from and what it uses; compiles when there is none.
py::dict kernel_facts(KernelObject& kernel, const py::object& device);

/// A measured compile, as a dict; None for a kernel of object code, which has no source.
py::object kernel_profile(KernelObject& kernel, const py::object& device);

}  // namespace kernwright::python
