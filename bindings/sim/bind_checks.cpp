// The checks of simulated devices: the base of kernwright.checks.
#include "base/readable_name.h"
#include "bindings/launch/kernel_source.h"
#include "bindings/support/bindings.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "core/launch/launch_history.h"
#include "sim/checks.h"

#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

/// One `with kw.checks(...)` block; turned on by enter(), once. Thread-safe: the report may be read
/// by another thread than the one at the end of the block.
class Scope {
 public:
  Scope(const std::vector<std::string>& words, std::size_t limit)
      : checks_(sim::check_set(words)), limit_(limit) {}

  void enter() {
    const GilRelease nogil;
    const std::lock_guard lock(mutex_);
    scope_ = std::make_unique<sim::CheckScope>(checks_, limit_);
  }
  /// The findings; checks are as they were before.
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
    return sim::findings_text(found_, total_);
  }
  /// For each finding the texts in which its line and the line of its other access count: None for
  /// files, and without another access.
  py::list texts() {
    std::vector<Texts> texts;
    {
      const GilRelease nogil;
      const std::lock_guard lock(mutex_);
      update();
      texts = texts_;
    }
    std::unordered_map<const std::string*, py::object> made;
    const auto object = [&](const std::string* text) -> py::object {
      if (text == nullptr) return py::none();
      py::object& known = made[text];
      if (!known) known = text_object(*text);
      return known;
    };
    py::list list;
    for (const Texts& one : texts) list.append(py::make_tuple(object(one.at), object(one.other)));
    return list;
  }
  std::uint64_t total() {
    const GilRelease nogil;
    const std::lock_guard lock(mutex_);
    update();
    return total_;
  }

 private:
  struct Texts {
    std::shared_ptr<const KernelSource> owner;
    const std::string* at = nullptr;
    const std::string* other = nullptr;
  };

  void update() {
    if (scope_ == nullptr) return;
    total_ = scope_->total();  // first: later findings must not look as if there had been no room
    found_ = scope_->findings();
    texts_.clear();
    for (sim::Finding& finding : found_) {
      Fault& fault = finding.fault;
      const auto source = find_source(finding.code);
      fault.place_texts([&](const std::string& file) {
        return find_first_line(source.get(), fault.kernel, file);
      });
      Texts texts{source, source ? source->find_text(fault.file) : nullptr};
      if (finding.other) {
        sim::OtherAccess& other = *finding.other;
        other.first_line = find_first_line(source.get(), fault.kernel, other.file);
        if (source) texts.other = source->find_text(other.file);
      }
      texts_.push_back(std::move(texts));
    }
  }

  static int find_first_line(const KernelSource* source, const std::string& kernel,
                             const std::string& file) {
    if (source != nullptr) return file == source->source.name ? source->source.first_line : 1;
    return static_cast<int>(KernelTag::find_first_line(kernel, file));
  }

  const sim::CheckSet checks_;
  const std::size_t limit_;
  std::mutex mutex_;  // guards all below
  std::unique_ptr<sim::CheckScope> scope_;
  std::vector<sim::Finding> found_;
  std::vector<Texts> texts_;  ///< parallel to found_
  std::uint64_t total_ = 0;
};

/// One `with kw.checks.schedule(...)` block.
class Schedule {
 public:
  explicit Schedule(std::optional<std::uint64_t> seed) : seed_(seed) {}
  void enter() {
    const GilRelease nogil;
    scope_ = std::make_unique<sim::ScheduleScope>(seed_);
  }
  void leave() {
    const GilRelease nogil;
    scope_.reset();
  }

 private:
  const std::optional<std::uint64_t> seed_;
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
      .def("texts", &Scope::texts)
      .def("total", &Scope::total);
  m.def("_readable_name",
        [](const std::string& lowered) { return text_object(readable_name(lowered)); });
  py::class_<Schedule, Unlocked<Schedule>>(m, "_Schedule")
      .def(py::init<std::optional<std::uint64_t>>())
      .def("enter", &Schedule::enter)
      .def("leave", &Schedule::leave);
}

}  // namespace kernwright::python
