// The facts for doctor: the driver, NVRTC and its headers, the table of environment variables.
#include "base/env.h"
#include "base/errors.h"
#include "bindings/support/bindings.h"
#include "bindings/support/gil.h"
#include "driver/driver_loader.h"
#include "driver/nvrtc_loader.h"
#include "jit/source/cuda_headers.h"

#include <pybind11/stl.h>

namespace kernwright::python {
namespace {

py::dict driver_status() {
  std::string reason;
  {
    const GilRelease release;
    load_cuda_driver(&reason);
  }
  const LoadedDriver* driver = cuda_driver();
  py::dict status;
  status["available"] = driver != nullptr;
  status["version"] = driver != nullptr ? driver->version : 0;
  status["path"] = driver != nullptr ? driver->path : "";
  status["reason"] = reason;
  return status;
}

py::list candidate_list() {
  py::list list;
  for (const NvrtcCandidate& candidate : nvrtc_candidates()) {
    list.append(py::make_tuple(candidate.origin, candidate.path, candidate.outcome));
  }
  return list;
}

py::dict nvrtc_status() {
  py::dict status;
  try {
    const LoadedNvrtc& found = nvrtc();
    status["found"] = true;
    status["version"] = found.version();
    status["path"] = found.path;
    status["builtins"] = found.builtins_path;
    status["archs"] = found.archs;
    status["error"] = "";
  } catch (const NvrtcNotFound& error) {
    status["found"] = false;
    status["error"] = error.what();
  }
  status["candidates"] = candidate_list();
  return status;
}

std::string headers_status() {
  try {
    const CudaHeaders headers = cuda_headers(nvrtc());
    std::string text = headers.origin;
    for (const std::string& folder : headers.folders) text += ", " + folder;
    if (!headers.note.empty()) text += " (" + headers.note + ")";
    return text;
  } catch (const NvrtcNotFound&) {
    return "none: they come with NVRTC";
  }
}

py::list environment_table() {
  py::list table;
  for (const EnvVariable& variable : env_table()) {
    py::dict row;
    row["name"] = variable.name;
    row["default"] = variable.default_value;
    row["choices"] = variable.choices;
    row["meaning"] = variable.meaning;
    table.append(row);
  }
  return table;
}

}  // namespace

void bind_status(py::module_& m) {
  m.def("driver_status", &driver_status, "Whether there is a driver, its version, or why not.");
  m.def("nvrtc_status", &nvrtc_status, "The NVRTC in use, or why none is, and the places tried.");
  m.def("headers_status", &headers_status, "Where CUDA's headers come from.");
  m.def("environment_table", &environment_table,
        "The environment variables: name, default, the words allowed if there are such, meaning.");
}

}  // namespace kernwright::python
