// The checks of simulated devices: what kernwright.checks is made of.
#include "bindings.h"
#include "core/launch_history.h"
#include "gil.h"
#include "sim/checks.h"

#include <pybind11/stl.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::python {
namespace {

/// One `with kw.checks(...)` block; turned on by enter().
class Scope {
 public:
  Scope(const std::vector<std::string>& words, std::size_t limit)
      : checks_(sim::check_set(words)), limit_(limit) {}

  void enter() {
    const GilRelease nogil;
    scope_ = std::make_unique<sim::CheckScope>(checks_, limit_);
  }
  /// What was found; checks are as they were before.
  void leave() {
    const GilRelease nogil;
    update();
    scope_.reset();
  }
  std::string json() {
    update();
    return sim::findings_json(found_);
  }
  std::string text() {
    update();
    return sim::findings_text(found_);
  }
  std::uint64_t total() {
    update();
    return total_;
  }

 private:
  void update() {
    if (scope_ == nullptr) return;
    found_ = scope_->findings();
    for (sim::Finding& finding : found_) {
      FaultReport& fault = finding.fault;
      fault.first_line = static_cast<int>(KernelTag::first_line_of(fault.kernel, fault.file));
    }
    total_ = scope_->total();
  }

  sim::CheckSet checks_;
  std::size_t limit_;
  std::unique_ptr<sim::CheckScope> scope_;
  std::vector<sim::Finding> found_;
  std::uint64_t total_ = 0;
};

}  // namespace

void bind_checks(py::module_& m) {
  py::class_<Scope>(m, "_CheckScope")
      .def(py::init<const std::vector<std::string>&, std::size_t>())
      .def("enter", &Scope::enter)
      .def("leave", &Scope::leave)
      .def("json", &Scope::json)
      .def("text", &Scope::text)
      .def("total", &Scope::total);
  m.def("_set_launch_seed", [](std::optional<std::uint64_t> seed) {
    const GilRelease nogil;
    sim::set_launch_seed(seed);
  });
}

}  // namespace kernwright::python
