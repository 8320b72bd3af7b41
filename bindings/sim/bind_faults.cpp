// Faults on request, for the tests of this package: only in a build with tests.
#include "bindings/support/bindings.h"

#ifdef KERNWRIGHT_FAULT_POINTS

#include "base/errors.h"
#include "base/format.h"
#include "core/lifecycle.h"
#include "core/runtime.h"
#include "driver/driver_loader.h"
#include "driver/driver_rows.h"
#include "driver/fault_driver.h"
#include "sim/device.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

namespace kernwright::python {
namespace {

FaultDriver* installed = nullptr;

const DriverApi& decorated() { return installed->api(); }

FaultDriver& faults() {
  if (installed == nullptr) throw Error("call install() first");
  return *installed;
}

/// "sim": the simulated device; "gpu": the simulated device, taken for a GPU: errors mean the same
/// as on one; "cuda": the real driver. Before devices are used.
void install(const std::string& device) {
  if (installed != nullptr) throw Error("faults are installed already");
  if (device == "sim") {
    installed = new FaultDriver(sim::driver_api());
    Runtime::register_sim(&decorated);
    return;
  }
  const bool real = device == "cuda";
  if (!real && device != "gpu") throw InvalidArgument("a device is 'sim', 'gpu' or 'cuda'");
  const DriverApi* const inner = real ? load_cuda_driver() : &sim::driver_api();
  if (inner == nullptr) throw DriverNotFound("there is no real driver");
  installed = new FaultDriver(*inner);
  Runtime::override_cuda(&decorated());
}

void arm(const std::string& function, int result, std::uint64_t call, bool forever, bool after,
         bool sticky, double delay) {
  FaultPlan plan;
  plan.function = function;
  plan.call = call;
  plan.result = result;
  plan.repeat = forever ? FaultPlan::Repeat::forever : FaultPlan::Repeat::once;
  plan.moment = after ? FaultPlan::Moment::after : FaultPlan::Moment::before;
  plan.sticky = sticky;
  plan.delay = std::chrono::nanoseconds(static_cast<std::int64_t>(delay * 1e9));
  faults().arm(plan);
}

/// Ends the process with exit code 97 at the first driver call of a forked child or after exit has
/// begun.
void forbid_late_calls() {
  faults().observe([](const char* name) {
    if (may_call_driver()) return;
    const std::string text = std::string("late driver call: ") + name + "\n";
    if (::write(STDERR_FILENO, text.data(), text.size()) < 0) ::_exit(98);
    ::_exit(97);
  });
}

std::atomic<bool> gil_calls[detail::kRows];

/// Notes the functions called by a thread that holds Python's lock.
void watch_gil() {
  faults().observe([](const char* name) {
    if (PyGILState_Check() == 0) return;
    for (std::size_t row = 0; row < detail::kRows; ++row) {
      if (detail::kRowNames[row] == std::string_view(name)) gil_calls[row] = true;
    }
  });
}

std::set<std::string> list_gil_calls() {
  std::set<std::string> names;
  for (std::size_t row = 0; row < detail::kRows; ++row) {
    if (gil_calls[row]) names.insert(detail::kRowNames[row]);
  }
  return names;
}

}  // namespace

void bind_faults(py::module_& core) {
  py::module_ m = core.def_submodule("_faults");
  m.def("install", &install, py::arg("device"));
  m.def("arm", &arm, py::arg("function"), py::arg("result"), py::arg("call") = 1, py::kw_only(),
        py::arg("forever") = false, py::arg("after") = false, py::arg("sticky") = false,
        py::arg("delay") = 0.0);
  m.def("disarm", [] { faults().disarm(); });
  m.def("fired", [] { return faults().fired(); });
  m.def("last_function", [] { return faults().last_function(); });
  m.def("calls", [] { return faults().calls(); });
  m.def("calls", [](const std::string& name) { return faults().calls(name); });
  m.def("forbid_late_calls", &forbid_late_calls);
  m.def("watch_gil", &watch_gil);
  m.def("names_called_with_gil", &list_gil_calls);
  m.def("call_with_gil", [] {
    int version = 0;
    faults().api().cuDriverGetVersion(&version);
  });
}

}  // namespace kernwright::python

#endif
