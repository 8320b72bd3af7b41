// The parts of the extension module, one for each layer, and their common declarations.
#pragma once

#include "base/diagnostic.h"

#include <pybind11/pybind11.h>
#include <string>
#include <vector>

namespace kernwright::python {

namespace py = pybind11;

void bind_base(py::module_& m);           ///< exceptions
void bind_core(py::module_& m);           ///< devices, streams, events, launch configurations
void bind_graph(py::module_& m);          ///< graphs
void bind_profile(py::module_& m);        ///< recordings of activities
void bind_memory(py::module_& m);         ///< pinned host memory
void bind_tensor_map(py::module_& m);     ///< TensorMap
void bind_cuda_array(py::module_& m);     ///< CudaArray
void bind_texture(py::module_& m);        ///< Texture, Surface
void bind_engine(py::module_& m);         ///< the loop of language models
void bind_transfer(py::module_& m);       ///< transfer engines
void bind_file(py::module_& m);           ///< parts of files to and from arrays
void bind_array(py::module_& m);          ///< Array and the exchange of arrays with other libraries
void bind_compile(py::module_& m);        ///< waits for compiles: stop flags, signals
void bind_jit(py::module_& m);            ///< Program and ObjectCode
void bind_request(py::module_& m);        ///< kernel() for plain texts, and where a text stands
void bind_launch(py::module_& m);         ///< Kernel, its bound configurations, argument wrappers
void bind_slices(py::module_& m);         ///< launches cut into slices
void bind_cache(py::module_& m);          ///< caches, packs, lint
void bind_checks(py::module_& m);         ///< checks of simulated devices
void bind_observe(py::module_& m);        ///< traces and line profiles of simulated devices
void bind_status(py::module_& m);         ///< for doctor: driver, NVRTC, headers, variables
void bind_tune_space(py::module_& m);     ///< expressions, spaces of configurations
void bind_tune_measure(py::module_& m);   ///< timers
void bind_tune_strategy(py::module_& m);  ///< searches
void bind_tune_session(py::module_& m);   ///< sessions
void bind_tune_store(py::module_& m);     ///< results of tuning in files
void bind_tune_call(py::module_& m);      ///< dispatch by the sizes of a problem
void bind_judge(py::module_& m);          ///< the judge
void bind_faults(py::module_& m);         ///< planned faults; only in a build with tests

/// A str; bytes that are not UTF-8 (a compiler may print any) become escapes.
py::object text_object(const std::string& text);
/// A list of kernwright.errors.Diagnostic.
py::list diagnostic_list(const std::vector<Diagnostic>& diagnostics);

}  // namespace kernwright::python
