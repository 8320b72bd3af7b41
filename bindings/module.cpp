// The extension module kernwright._core.
#include "bindings/calls/recorded_calls.h"
#include "bindings/calls/typed_calls.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/schedule/bind_schedule.h"
#include "bindings/support/bindings.h"
#include "bindings/support/docstrings.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_log.h"
#include "core/runtime.h"
#include "driver/nvrtc_loader.h"
#include "kernels_src/device_headers.h"
#include "sim/device.h"

#include <string>
#include <utility>
#include <vector>

namespace {

/// Tells the search for NVRTC where Python keeps packages; nothing is looked for yet.
void set_search_paths() {
  namespace py = pybind11;
  const py::object package = py::module_::import("kernwright");
  // As bytes: a folder's name need not be UTF-8.
  const py::object encode_path = py::module_::import("os").attr("fsencode");
  kernwright::set_package_directory(
      encode_path(package.attr("__path__")[py::int_(0)]).cast<std::string>());
  std::vector<std::string> folders;
  for (const py::handle folder : py::module_::import("sys").attr("path")) {
    if (PyUnicode_Check(folder.ptr())) folders.push_back(encode_path(folder).cast<std::string>());
  }
  kernwright::set_site_packages(std::move(folders));
}

}  // namespace

/// For the one interpreter that has it; see PyInit__core().
PYBIND11_MODULE(_core_main, m) {
  using namespace kernwright;
  m.doc() = "The compiled half of kernwright.";
  // Nothing is loaded or started here: drivers and NVRTC are opened when first needed.
  Runtime::register_sim(&sim::driver_api);
  set_search_paths();
  python::watch_interpreter();
  kernels::register_device_headers();
  python::bind_base(m);
  python::bind_log(m);
  python::bind_core(m);
  python::bind_graph(m);
  python::bind_profile(m);
  python::bind_memory(m);
  python::bind_array(m);
  python::bind_kernels(m);
  python::bind_engine(m);
  python::bind_transfer(m);
  python::bind_file(m);
  python::bind_compile(m);
  python::bind_jit(m);
  python::bind_request(m);
  python::bind_launch(m);
  python::bind_schedule(m);
  python::bind_slices(m);
  python::bind_tensor_map(m);
  python::bind_cuda_array(m);
  python::bind_texture(m);
  python::bind_cache(m);
  python::bind_checks(m);
  python::bind_observe(m);
  python::bind_status(m);
  python::bind_tune_space(m);
  python::bind_tune_strategy(m);
  python::bind_tune_session(m);
  python::bind_tune_measure(m);
  python::bind_tune_store(m);
  python::bind_tune_call(m);
  python::bind_judge(m);
#ifdef KERNWRIGHT_FAULT_POINTS
  python::bind_faults(m);
#endif
  python::bind_typed_function(m);
  python::bind_recorded_calls(m);
  python::type_calls(m);
  python::install_docstrings(m);
}

/// Devices, streams and caches belong to the process, and their callbacks take the main
/// interpreter's lock: from another interpreter that would wait for ever.
extern "C" PYBIND11_EXPORT PyObject* PyInit__core() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return PyInit__core_main();
  PyErr_SetString(PyExc_ImportError,
                  "kernwright serves the main interpreter of a process only: import it there, or "
                  "start a process (multiprocessing with the spawn method)");
  return nullptr;
}
