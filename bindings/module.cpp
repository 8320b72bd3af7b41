// The extension module kernwright._core.
#include "bindings.h"
#include "core/runtime.h"
#include "driver/nvrtc_loader.h"
#include "gil.h"
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
  kernwright::set_package_directory(
      py::str(package.attr("__path__")[py::int_(0)]).cast<std::string>());
  std::vector<std::string> folders;
  for (const py::handle folder : py::module_::import("sys").attr("path")) {
    if (PyUnicode_Check(folder.ptr())) folders.push_back(py::str(folder).cast<std::string>());
  }
  kernwright::set_site_packages(std::move(folders));
}

}  // namespace

PYBIND11_MODULE(_core, m) {
  using namespace kernwright;
  m.doc() = "The compiled half of kernwright.";
  // Nothing is loaded or started here: drivers and NVRTC are opened when first needed.
  Runtime::register_sim(&sim::driver_api);
  set_search_paths();
  python::watch_interpreter();
  kernels::register_device_headers();
  python::bind_base(m);
  python::bind_core(m);
  python::bind_graph(m);
  python::bind_profile(m);
  python::bind_memory(m);
  python::bind_array(m);
  python::bind_transfer(m);
  python::bind_compile(m);
  python::bind_jit(m);
  python::bind_request(m);
  python::bind_launch(m);
  python::bind_tensor_map(m);
  python::bind_cuda_array(m);
  python::bind_texture(m);
  python::bind_cache(m);
  python::bind_checks(m);
  python::bind_observe(m);
  python::bind_status(m);
  python::bind_tune_space(m);
  python::bind_tune_strategy(m);
#ifdef KERNWRIGHT_FAULT_POINTS
  python::bind_faults(m);
#endif
}
