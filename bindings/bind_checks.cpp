// The checks of simulated devices: what kernwright.checks is made of.
#include "bindings.h"
#include "core/launch_history.h"
#include "gil.h"
#include "python_support.h"
#include "sim/checks.h"

#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kernwright::python {
namespace {

/// One `with kw.checks(...)` block; turned on by enter(), once. Thread-safe: who reads the report
/// may be another thread than the one that leaves the block.
class Scope {
 public:
  Scope(const std::vector<std::string>& words, std::size_t limit)
      : checks_(sim::check_set(words)), limit_(limit) {}

  void enter() {
    const GilRelease nogil;
    const std::lock_guard lock(mutex_);
    scope_ = std::make_unique<sim::CheckScope>(checks_, limit_);
  }
  /// What was found; checks are as they were before.
  void leave() {
    const GilRelease nogil;
    const std::lock_guard lock(mutex_);
    update();
    scope_.reset();
  }
  std::string json() {
    const GilRelease nogil;
    const std::lock_guard lock(mutex_);
    update();
    return sim::findings_json(found_);
  }
  std::string text() {
    const GilRelease nogil;
    const std::lock_guard lock(mutex_);
    update();
    return sim::findings_text(found_);
  }
  std::uint64_t total() {
    const GilRelease nogil;
    const std::lock_guard lock(mutex_);
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

  const sim::CheckSet checks_;
  const std::size_t limit_;
  std::mutex mutex_;  // guards all below
  std::unique_ptr<sim::CheckScope> scope_;
  std::vector<sim::Finding> found_;
  std::uint64_t total_ = 0;
};

/// One `with kw.checks.schedule(...)` block.
class Schedule {
 public:
  explicit Schedule(std::uint64_t seed) : seed_(seed) {}
  void enter() {
    const GilRelease nogil;
    scope_ = std::make_unique<sim::ScheduleScope>(seed_);
  }
  void leave() {
    const GilRelease nogil;
    scope_.reset();
  }

 private:
  const std::uint64_t seed_;
  std::unique_ptr<sim::ScheduleScope> scope_;
};

}  // namespace

void bind_checks(py::module_& m) {
  py::class_<Scope, Unlocked<Scope>>(m, "_CheckScope")
      .def(py::init<const std::vector<std::string>&, std::size_t>())
      .def("enter", &Scope::enter)
      .def("leave", &Scope::leave)
      .def("json", &Scope::json)
      .def("text", &Scope::text)
      .def("total", &Scope::total);
  py::class_<Schedule, Unlocked<Schedule>>(m, "_Schedule")
      .def(py::init<std::uint64_t>())
      .def("enter", &Schedule::enter)
      .def("leave", &Schedule::leave);
}

}  // namespace kernwright::python
