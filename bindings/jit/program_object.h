// Python's Program.
#pragma once

#include "bindings/support/gil.h"
#include "jit/program.h"

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// A Program and its kernwright.ProgramOptions; those travel in pickles.
struct ProgramObject {
  ProgramObject(Program made, py::object given)
      : program(std::move(made)), options(std::move(given)) {}
  ProgramObject(const ProgramObject&) = default;
  ProgramObject(ProgramObject&&) = default;
  ~ProgramObject() { drop_without_gil(program); }
  Program program;
  py::object options;
};

/// Scans the source and checks its options, None or a kernwright.ProgramOptions; has NVRTC opened
/// ahead where it will be needed. Throws InvalidArgument.
ProgramObject make_program(Source source, const py::object& options);

}  // namespace kernwright::python
