// What Python calls a Program.
#pragma once

#include "jit/program.h"

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// A Program and the kernwright.ProgramOptions that it was made with, which travel in pickles.
struct ProgramObject {
  Program program;
  py::object options;
};

}  // namespace kernwright::python
