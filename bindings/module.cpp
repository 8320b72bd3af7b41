// The extension module kernwright._core.
#include "bindings.h"
#include "core/runtime.h"
#include "sim/device.h"

PYBIND11_MODULE(_core, m) {
  using namespace kernwright;
  m.doc() = "The compiled half of kernwright.";
  // Nothing is loaded or started here: drivers and NVRTC are opened when first needed.
  Runtime::register_sim(&sim::driver_api);
  python::bind_base(m);
  python::bind_core(m);
  python::bind_memory(m);
  python::bind_array(m);
  python::bind_jit(m);
  python::bind_launch(m);
  python::bind_status(m);
}
