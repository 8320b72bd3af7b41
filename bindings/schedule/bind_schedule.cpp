// Submissions are quick calls: no keyword reaches a dictionary.
#include "bindings/schedule/bind_schedule.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/nearest_name.h"
#include "bindings/launch/bind_slices.h"
#include "bindings/memory/memory_bindings.h"
#include "bindings/schedule/bind_blocks.h"
#include "bindings/schedule/kept_arrays.h"
#include "bindings/schedule/python_policy.h"
#include "bindings/schedule/task_object.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "core/device.h"
#include "core/launch/launch_pause.h"
#include "core/lifecycle.h"
#include "core/partition.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

using schedule::Bounds;
using schedule::kAllClasses;
using schedule::ordinal;
using schedule::Scheduler;
using schedule::seconds;
using schedule::TaskSpec;

/// Python's scheduler. Its end waits for running tasks; the GIL must not.
struct SchedulerObject {
  std::shared_ptr<Scheduler> scheduler;
  std::shared_ptr<schedule::Policy> policy;
};

/// At the end of the interpreter work of a task may have stopped for good: the scheduler stays.
void end_scheduler(Scheduler* scheduler) noexcept {
  try {
    if (is_interpreter_ending() && !scheduler->close(std::chrono::milliseconds(100))) return;
  } catch (const std::exception&) {
    return;  // the end comes from within the work of a task
  }
  delete scheduler;
}

std::shared_ptr<Scheduler> share_scheduler(std::unique_ptr<Scheduler> scheduler) {
  return {scheduler.release(), &end_scheduler};
}

/// A thread that waits in front of a launch gives Python's lock to others.
constexpr PauseHooks kPauseHooks = {
    []() noexcept -> void* { return PyGILState_Check() != 0 ? new GilRelease : nullptr; },
    [](void* left) noexcept { delete static_cast<GilRelease*>(left); }};

/// Those alive, for the end of the interpreter.
struct Schedulers {
  std::mutex mutex;
  std::vector<std::weak_ptr<Scheduler>> list;
};

Schedulers& schedulers() {
  static auto* const instance = new Schedulers;
  return *instance;
}

double plain_number(py::handle value, const char* what) {
  if (PyBool_Check(value.ptr())) throw ArgumentError(format("{} is a number, got bool", what));
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1.0 && PyErr_Occurred() != nullptr) {
    const py::error_already_set error;
    if (!error.matches(PyExc_TypeError)) throw error;
    throw ArgumentError(format("{} is a number, got {}", what, type_name(value)));
  }
  return number;
}

/// A number for both, or (request, limit).
template <typename T, typename Convert>
std::optional<Bounds<T>> bounds_argument(py::handle value, const char* what,
                                         const Convert& convert) {
  if (value.is_none()) return std::nullopt;
  if (!PyTuple_Check(value.ptr()) && !PyList_Check(value.ptr())) {
    const T both = convert(value, what);
    return Bounds<T>{both, both};
  }
  if (PySequence_Fast_GET_SIZE(value.ptr()) != 2) {
    throw ArgumentError(
        format("{} is a number or (request, limit), got {}", what, short_repr(value)));
  }
  PyObject** const items = PySequence_Fast_ITEMS(value.ptr());
  return Bounds<T>{convert(items[0], what), convert(items[1], what)};
}

std::uint64_t memory_number(py::handle value, const char* what) {
  return bytes_argument(value, what);
}

std::vector<schedule::TaskPointer> after_argument(py::handle value) {
  std::vector<schedule::TaskPointer> tasks;
  const auto add = [&](py::handle task) {
    if (!py::isinstance<TaskObject>(task)) {
      throw ArgumentError(format("after= is a task or several, got {}", type_name(task)));
    }
    tasks.push_back(task.cast<const TaskObject&>().task);
  };
  if (value.is_none()) return tasks;
  if (!PyTuple_Check(value.ptr()) && !PyList_Check(value.ptr())) {
    add(value);
    return tasks;
  }
  for (const py::handle task : value) add(task);
  return tasks;
}

int count_argument(py::handle value, const char* what) {
  if (PyIndex_Check(value.ptr()) == 0 || PyBool_Check(value.ptr())) {
    throw ArgumentError(format("{} is an int, got {}", what, type_name(value)));
  }
  const auto whole = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!whole) throw py::error_already_set();
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
  if (overflow != 0 || number < -1'000'000 || number > 1'000'000) {
    throw ArgumentRangeError(
        format("{}={}: it lies between -1000000 and 1000000", what, short_repr(value)));
  }
  return static_cast<int>(number);
}

std::optional<schedule::Time> deadline_argument(py::handle value) {
  if (value.is_none()) return std::nullopt;
  const double number = plain_number(value, "deadline");
  if (!(number > -1e9 && number < 1e9)) {
    throw ArgumentRangeError(
        format("deadline={}: it is a number of seconds from now, below 1e9", short_repr(value)));
  }
  return schedule::from_seconds(number);
}

constexpr std::array kOptions = {"qos",      "memory", "share", "priority",
                                 "deadline", "name",   "model", "after"};

void set_option(TaskSpec& spec, std::string_view name, py::handle value) {
  if (name == "qos") {
    spec.qos = schedule::qos_named(name_argument(value, "qos"));
  } else if (name == "memory") {
    spec.memory = bounds_argument<std::uint64_t>(value, "memory", memory_number);
  } else if (name == "share") {
    spec.share = bounds_argument<double>(value, "share", plain_number);
  } else if (name == "priority") {
    spec.priority = count_argument(value, "priority");
  } else if (name == "deadline") {
    spec.deadline = deadline_argument(value);
  } else if (name == "name") {
    if (!value.is_none()) spec.name = name_argument(value, "name");
  } else if (name == "model") {
    if (!value.is_none()) spec.model = name_argument(value, "model");
  } else if (name == "after") {
    spec.after = after_argument(value);
  } else {
    std::vector<std::string> known(kOptions.begin(), kOptions.end());
    const std::string near = nearest_name(std::string(name), known);
    throw ArgumentError(
        format("a task has no option {}{}; keywords for the work of submit() go into "
               "functools.partial(work, ...)",
               name, near.empty() ? "" : format(": did you mean {}?", near)));
  }
}

/// scheduler.submit(work, *arguments, qos=..., ...), with vectorcall's conventions.
PyObject* submit_task(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                      PyObject* keywords) {
  return guarded<PyObject*>(nullptr, [&] {
    const auto* const object = instance_value<SchedulerObject>(self);
    if (object == nullptr) throw ArgumentError("a Scheduler whose __init__() never ran");
    if (count < 1) throw ArgumentError("kw.schedule.Scheduler.submit(): work is missing");
    if (PyCallable_Check(arguments[0]) == 0 && !is_graph(arguments[0])) {
      throw ArgumentError(
          format("kw.schedule.Scheduler.submit(): work is a function, a kw.Graph or "
                 "kernel[grid, block] with its arguments, got {}",
                 type_name(arguments[0])));
    }
    TaskSpec spec;
    const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t i = 0; i < named; ++i) {
      Py_ssize_t length = 0;
      const char* const name = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(keywords, i), &length);
      if (name == nullptr) throw py::error_already_set();
      set_option(spec, {name, static_cast<std::size_t>(length)}, arguments[count + i]);
    }
    auto work = std::make_shared<TaskCall>(arguments[0], arguments + 1,
                                           static_cast<std::size_t>(count - 1));
    const std::shared_ptr<Scheduler> scheduler = object->scheduler;
    auto made = std::unique_ptr<TaskObject>(new TaskObject{
        py::reinterpret_borrow<py::object>(self), scheduler.get(), nullptr, std::move(work)});
    const Stream behind = current_stream(scheduler->device());
    made->task =
        without_gil([&] { return scheduler->submit(std::move(spec), made->work, behind); });
    return py::cast(std::move(made)).release().ptr();
  });
}

/// A policy of Python may refer to the scheduler. While another thread has the scheduler, the
/// policy is in use.
int visit_scheduler(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const auto* const object = instance_value<SchedulerObject>(self);
  if (object == nullptr || object->scheduler.use_count() != 1) return 0;
  return visit_policy(*object->policy, visit, arg);
}

int clear_scheduler(PyObject* self) {
  auto* const object = instance_value<SchedulerObject>(self);
  if (object != nullptr && object->scheduler.use_count() == 1) drop_policy(*object->policy);
  return 0;
}

/// Gives pybind11's type the slots for quick calls and for the garbage collector.
void set_scheduler_slots(PyHeapTypeObject* heap_type) {
  static PyMethodDef methods[] = {
      {"submit", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&submit_task)),
       METH_FASTCALL | METH_KEYWORDS, "submit(work, *arguments, **options)"},
      {nullptr, nullptr, 0, nullptr},
  };
  heap_type->ht_type.tp_methods = methods;
  heap_type->ht_type.tp_flags |= Py_TPFLAGS_HAVE_GC;
  heap_type->ht_type.tp_traverse = &visit_scheduler;
  heap_type->ht_type.tp_clear = &clear_scheduler;
}

std::array<std::size_t, schedule::kClasses> most_running_argument(const py::object& value) {
  std::array<std::size_t, schedule::kClasses> most = schedule::SchedulerOptions().most_running;
  if (value.is_none()) return most;
  if (!PyDict_Check(value.ptr())) {
    throw ArgumentError(
        format("most_running is a dict of numbers by class, got {}", type_name(value)));
  }
  for (const auto& [key, number] : py::reinterpret_borrow<py::dict>(value)) {
    const schedule::Qos qos = schedule::qos_named(name_argument(key, "a class"));
    const int count = count_argument(number, "most_running");
    if (count < 1) throw InvalidArgument(format("most_running={}: at least 1", short_repr(value)));
    most[ordinal(qos)] = static_cast<std::size_t>(count);
  }
  return most;
}

Unlocked<SchedulerObject> known_scheduler(std::shared_ptr<Scheduler> scheduler,
                                          std::shared_ptr<schedule::Policy> policy) {
  Unlocked<SchedulerObject> made(new SchedulerObject{std::move(scheduler), std::move(policy)});
  const std::lock_guard lock(schedulers().mutex);
  std::erase_if(schedulers().list, [](const auto& known) { return known.expired(); });
  schedulers().list.push_back(made->scheduler);
  return made;
}

/// Tasks run on streams of the partition, within its limits.
void keep_inside(const Partition& partition, schedule::SchedulerOptions& options) {
  const PartitionRequest& limits = partition.request();
  if (limits.memory != 0 && (options.memory == 0 || options.memory > limits.memory)) {
    options.memory = limits.memory;
  }
  options.share = std::min(options.share, limits.share);
  options.multiprocessors = partition.multiprocessors();
  options.make_stream = [partition](Device&, int priority) { return partition.stream(priority); };
}

Unlocked<SchedulerObject> make_scheduler(const py::object& device, const py::object& memory,
                                         const py::object& policy, const py::object& share,
                                         bool background, const py::object& most_running,
                                         bool yields) {
  schedule::SchedulerOptions options;
  if (!memory.is_none()) {
    options.memory = bytes_argument(memory, "memory");
    if (options.memory == 0) {
      throw InvalidArgument("memory=0: a scheduler without memory; None takes what is free");
    }
  }
  auto own_policy = policy_argument(policy);
  options.policy = own_policy;
  options.share = plain_number(share, "share");
  options.cut = &cut_unlocked;
  options.background = background;
  options.yields = yields;
  options.most_running = most_running_argument(most_running);
  const bool is_partition = py::isinstance<Partition>(device);
  if (is_partition) keep_inside(device.cast<const Partition&>(), options);
  Device& chosen =
      is_partition ? device.cast<const Partition&>().device() : device_argument(device);
  return known_scheduler(
      without_gil(
          [&] { return share_scheduler(std::make_unique<Scheduler>(chosen, std::move(options))); }),
      std::move(own_policy));
}

Unlocked<SchedulerObject> make_partition(const SchedulerObject& self, const py::object& sms,
                                         const py::object& memory, const py::object& policy,
                                         const py::object& share) {
  const int count = count_argument(sms, "sms");
  if (count < 1) throw InvalidArgument(format("sms={}: at least 1", short_repr(sms)));
  schedule::SchedulerOptions options;
  if (!memory.is_none()) {
    options.memory = bytes_argument(memory, "memory");
    if (options.memory == 0) throw InvalidArgument("memory=0: a partition without memory");
  }
  auto own_policy = policy_argument(policy);
  options.policy = own_policy;
  options.share = plain_number(share, "share");
  auto made = without_gil([&]() -> std::shared_ptr<Scheduler> {
    return share_scheduler(self.scheduler->partition(count, std::move(options)));
  });
  return known_scheduler(std::move(made), std::move(own_policy));
}

py::dict scheduler_stats(const SchedulerObject& self) {
  const auto stats = without_gil([&] { return self.scheduler->stats(); });
  py::dict classes;
  for (const schedule::Qos qos : kAllClasses) {
    const schedule::ClassStats& class_stats = stats.classes[ordinal(qos)];
    py::dict row;
    row["submitted"] = class_stats.submitted;
    row["waiting"] = class_stats.waiting;
    row["running"] = class_stats.running;
    row["done"] = class_stats.done;
    row["failed"] = class_stats.failed;
    row["cancelled"] = class_stats.cancelled;
    row["refused"] = class_stats.refused;
    row["device"] = seconds(class_stats.device);
    classes[schedule::qos_name(qos)] = row;
  }
  py::dict tenants;
  for (const schedule::TenantStats& tenant : stats.tenants) {
    py::dict row;
    row["share"] =
        tenant.share == 0 ? py::object(py::none()) : py::object(py::float_(tenant.share));
    row["used"] = tenant.used;
    row["used_10ms"] = tenant.used_shortly;
    row["tasks"] = tenant.live;
    row["device"] = seconds(tenant.device);
    tenants[text_object(tenant.name)] = row;
  }
  const double whole = schedule::kWholeShare;
  py::dict memory;
  memory["total"] = stats.capacity.memory;
  memory["reserved"] = stats.reserved.memory;
  py::dict share;
  share["total"] = stats.capacity.share / whole;
  share["reserved"] = stats.reserved.share / whole;
  py::dict all;
  all["classes"] = classes;
  all["tenants"] = tenants;
  all["memory"] = memory;
  all["share"] = share;
  all["seconds"] = seconds(stats.now);
  return all;
}

/// The latest tasks, also those over, as plain values.
py::list task_list(const SchedulerObject& self) {
  const std::vector<schedule::TaskPointer> tasks =
      without_gil([&] { return self.scheduler->tasks(); });
  py::list list;
  for (const schedule::TaskPointer& task : tasks) {
    py::dict row;
    row["id"] = task->id();
    row["name"] = text_object(task->spec().name);
    row["model"] = text_object(task->spec().model);
    row["qos"] = schedule::qos_name(task->spec().qos);
    row["state"] = schedule::state_name(task->state());
    row["explained"] = text_object(without_gil([&] { return self.scheduler->explain(task); }));
    row["history"] = history_list(*self.scheduler, task);
    row["stats"] = task_stats_dict(*self.scheduler, task);
    list.append(std::move(row));
  }
  return list;
}

/// Repeats a wait for running tasks until it succeeds, and looks at Python's signals meanwhile.
template <bool (Scheduler::*wait)(std::optional<std::chrono::nanoseconds>)>
void wait_for_all(const SchedulerObject& self) {
  constexpr std::chrono::milliseconds kPiece(50);
  while (!without_gil([&] { return ((*self.scheduler).*wait)(kPiece); })) {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

py::object scheduler_view(const char* name, const py::object& self) {
  return module_member("kernwright.schedule._view", name)(self);
}

/// At the exit of the interpreter waiting tasks are cancelled, and running ones at their next
/// launch. In a forked child a thread of the parent may hold the locks.
void end_schedulers() {
  if (!may_call_driver()) return;
  const GilRelease unlocked;
  std::vector<std::shared_ptr<Scheduler>> alive;  // the last reference may wait for tasks
  {
    const std::lock_guard lock(schedulers().mutex);
    for (const auto& known : schedulers().list)
      if (auto scheduler = known.lock()) alive.push_back(std::move(scheduler));
  }
  for (const auto& scheduler : alive)
    for (const auto& task : scheduler->live()) scheduler->cancel(task);
}

}  // namespace

TaskSpec make_spec(const py::kwargs& options) {
  TaskSpec spec;
  for (const auto& [name, value] : options) {
    set_option(spec, py::reinterpret_borrow<py::str>(name).cast<std::string>(), value);
  }
  spec.check();
  return spec;
}

void bind_schedule(py::module_& m) {
  using Object = SchedulerObject;
  set_pause_hooks(kPauseHooks);
  bind_task(m);
  bind_blocks(m);
  bind_kept_arrays(m);
  py::class_<Object, Unlocked<Object>>(m, "Scheduler", py::custom_type_setup(&set_scheduler_slots))
      .def(py::init(&make_scheduler), py::arg("device") = py::none(),
           py::arg("memory") = py::none(), py::arg("policy") = "default", py::kw_only(),
           py::arg("share") = 1.0, py::arg("background") = true,
           py::arg("most_running") = py::none(), py::arg("yields") = false)
      .def_property_readonly("device",
                             [](const Object& o) { return DeviceObject{&o.scheduler->device()}; })
      .def_property_readonly(
          "policy", [](const Object& o) { return text_object(o.scheduler->policy().name()); })
      .def_property_readonly(
          "closed",
          [](const Object& o) { return without_gil([&] { return o.scheduler->is_closed(); }); })
      .def_property_readonly("sms", [](const Object& o) { return o.scheduler->multiprocessors(); })
      .def("partition", &make_partition, py::arg("sms"), py::arg("memory") = py::none(),
           py::arg("policy") = "default", py::kw_only(), py::arg("share") = 1.0)
      .def("task",
           [](const py::object& self, const py::kwargs& options) {
             return make_block_task(self, self.cast<const Object&>().scheduler, make_spec(options));
           })
      .def("_launches",
           [](const Object& o, const py::kwargs& options) {
             return make_block_launches(o.scheduler, make_spec(options));
           })
      .def("_keep",
           [](const Object& o, const std::string& model, const std::shared_ptr<KeptArrays>& kept) {
             without_gil([&] { o.scheduler->keep(model, kept); });
           })
      .def(
          "keep",
          [](const py::object& self, const py::args& objects, const py::object& model,
             const py::object& qos) {
            return module_member("kernwright.schedule._kept", "keep")(self, objects, model, qos);
          },
          py::kw_only(), py::arg("model") = py::none(), py::arg("qos") = "best_effort")
      .def("_reap", [](const Object& o) { without_gil([&] { o.scheduler->reap(); }); })
      .def("step", [](const Object& o) { return without_gil([&] { return o.scheduler->step(); }); })
      .def("drain", &wait_for_all<&Scheduler::drain>)
      .def("close", &wait_for_all<&Scheduler::close>)
      .def(
          "explain",
          [](const Object& o, const TaskObject& task) {
            return text_object(without_gil([&] { return o.scheduler->explain(task.task); }));
          },
          py::arg("task"))
      .def("stats", &scheduler_stats)
      .def("tasks", &task_list)
      .def("panel", [](const py::object& self) { return scheduler_view("panel", self); })
      .def("trace", [](const py::object& self) { return scheduler_view("events", self); })
      .def(
          "save",
          [](const py::object& self, const py::object& path) {
            module_member("kernwright.schedule._view", "save")(self, path);
          },
          py::arg("path"))
      .def("__enter__", [](const py::object& self) { return self; })
      .def("__exit__", [](const Object& o, const py::args&) { wait_for_all<&Scheduler::close>(o); })
      .def("__repr__", [](const Object& o) {
        return text_object(format("<Scheduler of {}, policy {}>", o.scheduler->device().label(),
                                  o.scheduler->policy().name()));
      });
  m.def("_end_schedulers", &end_schedulers);
  m.def("_policy_names", [] {
    py::list list;
    for (const std::string& name : schedule::policy_names()) list.append(text_object(name));
    return list;
  });
}

}  // namespace kernwright::python
