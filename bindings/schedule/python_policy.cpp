// Candidates for Python, and its choice.
#include "bindings/schedule/python_policy.h"

#include "base/errors.h"
#include "base/format.h"
#include "bindings/support/bindings.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"

#include <pybind11/stl.h>
#include <vector>

namespace kernwright::python {
namespace {

using schedule::Candidate;
using schedule::Load;

py::object number_or_none(const std::optional<schedule::Time>& time) {
  return time ? py::object(py::float_(schedule::seconds(*time))) : py::object(py::none());
}

py::object candidate_object(const Candidate& candidate) {
  static constinit KeptObject type;
  const schedule::TaskSpec& spec = candidate.task->spec();
  return named_tuple(type.member("kernwright.schedule._policy", "Candidate"),
                     py::make_tuple(candidate.task->id(), text_object(spec.name),
                                    text_object(spec.model), schedule::qos_name(candidate.qos),
                                    spec.priority, number_or_none(candidate.deadline),
                                    schedule::seconds(candidate.task->submitted()), candidate.share,
                                    candidate.used, candidate.progress));
}

py::object load_object(const Load& load) {
  static constinit KeptObject type;
  py::dict waiting;
  py::dict running;
  for (const schedule::Qos qos : schedule::kAllClasses) {
    waiting[schedule::qos_name(qos)] = load.waiting[schedule::ordinal(qos)];
    running[schedule::qos_name(qos)] = load.running[schedule::ordinal(qos)];
  }
  return named_tuple(type.member("kernwright.schedule._policy", "Load"),
                     py::make_tuple(schedule::seconds(load.now), waiting, running));
}

/// No lock of the scheduler is held when it is called, so it may take Python's.
class PythonPolicy final : public schedule::Policy {
 public:
  explicit PythonPolicy(py::object policy)
      : name_(type_name(policy)), policy_(keep_alive(policy)), object_(policy.ptr()) {}

  std::string name() const override { return name_; }
  bool is_foreign() const noexcept override { return true; }

  std::optional<std::size_t> choose(std::span<const Candidate> candidates,
                                    const Load& load) override {
    const GilAcquire held;
    if (!held || !object_) return std::nullopt;
    try {
      return ask(candidates, load);
    } catch (const py::error_already_set& error) {
      throw Error(format("{}.choose() raised {}", name_, error.what()));
    }
  }

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(object_);
    return 0;
  }
  /// The policy chooses nothing from here on.
  void drop() noexcept {
    object_ = nullptr;
    policy_.reset();
  }

 private:
  std::optional<std::size_t> ask(std::span<const Candidate> candidates, const Load& load) const {
    const auto policy = py::reinterpret_borrow<py::object>(object_);
    std::vector<py::object> objects;  // the policy may change its list
    for (const Candidate& candidate : candidates) objects.push_back(candidate_object(candidate));
    const py::object choose_one = policy.attr("choose");
    const py::object chosen =
        call_python(choose_one, py::make_tuple(py::cast(objects), load_object(load)));
    if (chosen.is_none()) return std::nullopt;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (objects[i].is(chosen)) return i;
    }
    if (PyIndex_Check(chosen.ptr()) && !PyBool_Check(chosen.ptr())) {
      const Py_ssize_t index = PyNumber_AsSsize_t(chosen.ptr(), nullptr);
      if (index >= 0 && index < static_cast<Py_ssize_t>(candidates.size())) {
        return static_cast<std::size_t>(index);
      }
      PyErr_Clear();
    }
    throw Error(
        format("{}.choose() returned {}: it returns one of the {} candidates, its index, or "
               "None",
               name_, short_repr(chosen), candidates.size()));
  }

  const std::string name_;
  std::shared_ptr<void> policy_;
  PyObject* object_;  ///< null after drop()
};

}  // namespace

int visit_policy(const schedule::Policy& policy, visitproc visit, void* arg) {
  const auto* const known = dynamic_cast<const PythonPolicy*>(&policy);
  return known != nullptr ? known->traverse(visit, arg) : 0;
}

void drop_policy(schedule::Policy& policy) noexcept {
  if (auto* const known = dynamic_cast<PythonPolicy*>(&policy)) known->drop();
}

std::shared_ptr<schedule::Policy> policy_argument(py::handle value) {
  if (PyUnicode_Check(value.ptr())) {
    return schedule::policy_named(name_argument(value, "the name of a policy"));
  }
  const bool is_class = PyType_Check(value.ptr()) != 0;
  if (is_class || !has_attribute(value, "choose") ||
      PyCallable_Check(value.attr("choose").ptr()) == 0) {
    throw ArgumentError(format(
        "a policy is a name or an object with a method choose(candidates, load), got {}",
        is_class ? format("the class {}: pass an instance", short_repr(value)) : type_name(value)));
  }
  return std::make_shared<PythonPolicy>(py::reinterpret_borrow<py::object>(value));
}

}  // namespace kernwright::python
