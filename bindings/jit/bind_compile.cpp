// Compiling in the background: the stop flag, deadlines; Ctrl-C while a thread waits for a compile
// or runs a simulated launch.
#include "base/errors.h"
#include "bindings/launch/kernel_source.h"
#include "bindings/support/bindings.h"
#include "bindings/support/compile_limits.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "core/launch/launch_history.h"
#include "jit/compile/compile_wait.h"
#include "sim/device.h"
#include "worker/compile_workers.h"

#include <dlfcn.h>
#include <pybind11/stl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

/// The exception of a signal's handler while the main thread waited. Touched with the GIL held.
std::optional<py::error_already_set>& raised_by_signal() {
  static auto& raised = *new std::optional<py::error_already_set>;  // outlives the interpreter
  return raised;
}

/// Python runs the handlers of signals in its main thread alone: the main thread of the process.
bool signal_ends_wait() {
  if (::syscall(SYS_gettid) != ::getpid()) return false;
  const GilAcquire locked;
  if (!locked || PyErr_CheckSignals() == 0) return false;
  raised_by_signal().emplace();
  return true;
}

/// Whether Ctrl-C was pressed, where it is what Python makes of it by default. Asked while locks
/// are held: no handler is called and nothing is collected. The signal stays noted, for its
/// handler.
bool ctrl_c_ends_launch() {
  if (::syscall(SYS_gettid) != ::getpid()) return false;
  const GilAcquire locked;
  if (!locked || PyOS_InterruptOccurred() == 0) return false;
  PyErr_SetInterrupt();
  try {
    const auto signals = py::module_::import("_signal");
    return signals.attr("getsignal")(SIGINT).is(signals.attr("default_int_handler"));
  } catch (const py::error_already_set&) {
    return false;
  }
}

/// The program beside this extension. If it is missing or may not be executed (unpacked by a tool
/// without modes), an interpreter with the extension; a frozen program's executable is no
/// interpreter.
std::vector<std::string> worker_command() {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<void*>(&worker_command), &self) == 0) return {};
  const std::string extension = self.dli_fname;
  const std::string program = extension.substr(0, extension.rfind('/') + 1) + "kernwright-worker";
  const auto sys = py::module_::import("sys");
  const std::string interpreter = py::str(py::getattr(sys, "executable", py::str("")));
  const bool is_frozen = py::hasattr(sys, "frozen");
  if (::access(program.c_str(), X_OK) == 0 || interpreter.empty() || interpreter == "None" ||
      is_frozen) {
    return {program};
  }
  constexpr const char* kCode =
      "import ctypes, sys; ctypes.CDLL(sys.argv[1]).kernwright_worker_main(0, None)";
  return {interpreter, "-I", "-S", "-c", kCode, extension};
}

}  // namespace

WaitLimits wait_limits_argument(const py::object& timeout, const StopObject* stop) {
  WaitLimits limits = current_wait_limits();
  if (const auto limit = timeout_argument(timeout)) {
    limits = limits.within(std::chrono::ceil<std::chrono::milliseconds>(*limit));
  }
  if (stop != nullptr) limits.stop = stop->flag;
  return limits;
}

void restore_interrupt() {
  if (raised_by_signal()) {
    raised_by_signal()->restore();
    raised_by_signal().reset();
  } else if (PyErr_CheckSignals() == 0) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  }
}

void bind_compile(py::module_& m) {
  py::class_<StopObject>(m, "_Stop")
      .def(py::init<>())
      .def("stop", [](const StopObject& o) { o.flag->store(true); })
      .def_property_readonly("is_stopped", [](const StopObject& o) { return o.flag->load(); });
  set_worker_command(worker_command());
  m.def("_set_worker_command", &set_worker_command, py::arg("command"));
  use_compile_workers();
  set_interrupt_check(&signal_ends_wait);
  sim::set_interrupt_check(&ctrl_c_ends_launch);
  sim::set_text_places([](std::string_view kernel, std::string_view file) {
    return static_cast<int>(KernelTag::find_first_line(kernel, file));
  });
  sim::set_text_lines(&shown_line);
}

}  // namespace kernwright::python
