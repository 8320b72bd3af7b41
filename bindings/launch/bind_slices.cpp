// Slices for Python: the launches of a `with` block, cut into runs of their blocks.
#include "bindings/launch/bind_slices.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/launch/kernel_source.h"
#include "bindings/support/bindings.h"
#include "bindings/support/gil.h"
#include "bindings/support/launch_site.h"
#include "core/device.h"
#include "core/launch/launch_pause.h"
#include "jit/slice/slice_plan.h"
#include "jit/sliced_kernel.h"
#include "jit/slicing.h"
#include "sim/check/report/findings.h"

#include <cstdint>
#include <memory>
#include <thread>

namespace kernwright::python {
namespace {

/// Reports of the simulated device show lines of the text as its author wrote it.
void note_twin(const SlicedKernel& twin) {
  if (!twin.kernel.device().is_simulated() || twin.source.text.empty()) return;
  const std::uint64_t code = sim::code_id(twin.code->code.c_str());
  if (!find_source(code)) remember_source(Program(twin.source, twin.options), code);
}

/// The first launch of a kernel compiles its twin, for which Python's lock must be free.
class PythonSlicing : public Slicing {
 public:
  using Slicing::Slicing;
  void launch(const Kernel& kernel, const LaunchConfig& config, std::span<void* const> arguments,
              const LaunchSite& site) override {
    const LaunchSite here = options_.strict ? user_line(site) : site;
    if (PyGILState_Check() == 0) return Slicing::launch(kernel, config, arguments, here);
    const GilRelease unlocked;
    Slicing::launch(kernel, config, arguments, here);
  }

 protected:
  void begin(const SlicedKernel& twin) override { note_twin(twin); }

 private:
  /// A SlicedKernel launches from this package's own Python.
  static LaunchSite user_line(const LaunchSite& site) noexcept {
    const GilAcquire locked;
    return locked ? user_site() : site;
  }
};

/// kw.slices(...): the object of a `with`.
class SlicesObject {
 public:
  SlicesObject(std::uint64_t max_blocks, bool strict, std::uint64_t words)
      : slicing_({.max_blocks = max_blocks, .strict = strict, .words = words}) {}

  void enter() {
    if (scope_) throw InvalidArgument("kw.slices: this object is in use; make one for each block");
    thread_ = std::this_thread::get_id();
    scope_ = std::make_unique<LaunchHookScope>(&slicing_);
  }
  void exit() {
    if (!scope_ || thread_ != std::this_thread::get_id()) {
      throw InvalidArgument("kw.slices: a block ends on the thread where it begins");
    }
    scope_.reset();
  }
  const SlicingCounts& counts() const { return slicing_.counts(); }

 private:
  PythonSlicing slicing_;
  std::unique_ptr<LaunchHookScope> scope_;
  std::thread::id thread_;
};

}  // namespace

std::unique_ptr<LaunchPieces> cut_unlocked(const Kernel& kernel, const LaunchConfig& config,
                                           std::span<void* const> arguments, const LaunchSite& site,
                                           const PieceRequest& request) {
  const LaunchPause paused;
  return cut_launch(kernel, config, arguments, site, request, &note_twin);
}

void bind_slices(py::module_& m) {
  py::class_<SlicesObject>(m, "slices")
      .def(py::init<std::uint64_t, bool, std::uint64_t>(), py::arg("max_blocks"), py::kw_only(),
           py::arg("strict") = false, py::arg("words") = 0)
      .def("__enter__",
           [](const py::object& self) {
             self.cast<SlicesObject&>().enter();
             return self;
           })
      .def("__exit__", [](SlicesObject& self, const py::args&) { self.exit(); })
      .def_property_readonly("launches", [](const SlicesObject& s) { return s.counts().launches; })
      .def_property_readonly("queued", [](const SlicesObject& s) { return s.counts().slices; })
      .def_property_readonly("refused", [](const SlicesObject& s) { return s.counts().refused; })
      .def_property_readonly("reason",
                             [](const SlicesObject& s) { return text_object(s.counts().reason); });
  m.def(
      "_slice_blocks",
      [](std::uint64_t blocks, double launch_us, double latency_us, int multiprocessors,
         int resident_blocks) {
        return slice_blocks({.blocks = blocks,
                             .launch_us = launch_us,
                             .latency_us = latency_us,
                             .multiprocessors = multiprocessors,
                             .resident_blocks = resident_blocks});
      },
      py::arg("blocks"), py::arg("launch_us"), py::arg("latency_us"), py::arg("multiprocessors"),
      py::arg("resident_blocks"));
}

}  // namespace kernwright::python
