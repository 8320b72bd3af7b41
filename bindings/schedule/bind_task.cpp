// Tasks for Python: results, waits, callbacks.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/schedule/task_object.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace kernwright::python {
namespace {

using schedule::seconds;
using std::chrono::nanoseconds;

/// Waits with the GIL released, and looks at Python's signals meanwhile. False after the timeout.
bool wait_for_task(const TaskObject& self, std::optional<nanoseconds> timeout) {
  constexpr nanoseconds kPiece = std::chrono::milliseconds(50);
  schedule::WaitBy by = schedule::WaitBy::looking;
  while (!self.task->is_over()) {
    const nanoseconds piece = timeout ? std::min(*timeout, kPiece) : kPiece;
    if (without_gil([&] { return self.scheduler->wait(self.task, piece, by); })) return true;
    by = schedule::WaitBy::sleeping;  // it looks once, not once a piece
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!timeout) continue;
    *timeout -= piece;
    if (*timeout <= nanoseconds(0)) return self.task->is_over();
  }
  return true;
}

/// Whether the task is over within the time that a thread takes to sleep and wake.
bool wait_shortly(const TaskObject& self) {
  constexpr nanoseconds kShort = std::chrono::microseconds(40);
  return self.task->is_over() ||
         without_gil([&] { return self.scheduler->wait(self.task, kShort); });
}

void require_over(const TaskObject& self, const py::object& timeout) {
  if (wait_for_task(self, timeout_argument(timeout))) return;
  throw Timeout(format("after {} s: {}", py::str(timeout).cast<std::string>(),
                       without_gil([&] { return self.scheduler->explain(self.task); })));
}

/// Raises what the work raised, or the error of the task.
void raise_failure(const TaskObject& self) {
  std::exception_ptr failure = without_gil([&] { return self.scheduler->failure(self.task); });
  if (failure == nullptr) return;
  const bool is_cancelled = self.task->state() == schedule::TaskState::cancelled;
  if (self.work != nullptr && !is_cancelled) self.work->raise_error();
  std::rethrow_exception(std::move(failure));
}

py::object task_result(const TaskObject& self, const py::object& timeout) {
  require_over(self, timeout);
  raise_failure(self);
  return self.work != nullptr ? self.work->result() : py::none();
}

py::object task_exception(const TaskObject& self, const py::object& timeout) {
  require_over(self, timeout);
  try {
    raise_failure(self);
  } catch (...) {
    set_python_error(std::current_exception());
    const py::error_already_set error;
    return error.value();
  }
  return py::none();
}

void add_done_callback(const py::object& self, const py::object& callback) {
  if (PyCallable_Check(callback.ptr()) == 0) {
    throw ArgumentError(
        format("a callback is a function of the task, got {}", type_name(callback)));
  }
  const auto& object = self.cast<const TaskObject&>();
  auto call = [held_self = keep_alive(self), held = keep_alive(callback), task = self.ptr(),
               function = callback.ptr()] {
    const GilAcquire locked;
    if (!locked) return;
    PyObject* const result = PyObject_CallOneArg(function, task);
    if (result == nullptr) PyErr_WriteUnraisable(function);
    Py_XDECREF(result);
  };
  const GilRelease unlocked;
  object.scheduler->at_end(object.task, std::move(call));
}

bool cancel_task(const TaskObject& self) {
  return without_gil([&] { return self.scheduler->cancel(self.task); });
}

/// The result of a call, or a frame in the trace of the exception, may refer to the task. The
/// scheduler shares the call until the call is over.
int visit_task(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const auto* const object = instance_value<TaskObject>(self);
  if (object == nullptr) return 0;
  Py_VISIT(object->owner.ptr());
  return object->work.use_count() == 1 ? object->work->traverse(visit, arg) : 0;
}

int clear_task(PyObject* self) {
  auto* const object = instance_value<TaskObject>(self);
  if (object != nullptr && object->work.use_count() == 1) object->work->drop();
  return 0;
}

void set_task_slots(PyHeapTypeObject* heap_type) {
  heap_type->ht_type.tp_flags |= Py_TPFLAGS_HAVE_GC;
  heap_type->ht_type.tp_traverse = &visit_task;
  heap_type->ht_type.tp_clear = &clear_task;
}

std::string describe_task(const TaskObject& self) {
  const schedule::Task& task = *self.task;
  return format("<Task {}{}: {}, {}>", task.id(),
                task.spec().name.empty() ? "" : " \"" + task.spec().name + "\"",
                schedule::qos_name(task.spec().qos), schedule::state_name(task.state()));
}

}  // namespace

py::list history_list(const schedule::Scheduler& scheduler, const schedule::TaskPointer& task) {
  const auto changes = without_gil([&] { return scheduler.history(task); });
  py::list list;
  for (const schedule::StateChange& change : changes) {
    list.append(py::make_tuple(schedule::state_name(change.state), seconds(change.time),
                               text_object(change.reason)));
  }
  return list;
}

py::dict task_stats_dict(const schedule::Scheduler& scheduler, const schedule::TaskPointer& task) {
  const auto stats = without_gil([&] { return scheduler.stats(task); });
  py::dict all;
  all["queued"] = seconds(stats.queued);
  all["device"] = seconds(stats.device);
  all["launches"] = stats.launches;
  all["bytes"] = stats.bytes;
  all["peak"] = stats.peak;
  all["preemptions"] = stats.preemptions;
  return all;
}

void bind_task(py::module_& m) {
  using Object = TaskObject;
  py::class_<Object, std::unique_ptr<Object>>(m, "ScheduledTask",
                                              py::custom_type_setup(&set_task_slots))
      .def_property_readonly("id", [](const Object& o) { return o.task->id(); })
      .def_property_readonly("name",
                             [](const Object& o) { return text_object(o.task->spec().name); })
      .def_property_readonly("model",
                             [](const Object& o) { return text_object(o.task->spec().model); })
      .def_property_readonly("qos",
                             [](const Object& o) { return schedule::qos_name(o.task->spec().qos); })
      .def_property_readonly("state",
                             [](const Object& o) { return schedule::state_name(o.task->state()); })
      .def_property_readonly("stats",
                             [](const Object& o) { return task_stats_dict(*o.scheduler, o.task); })
      .def_property_readonly("history",
                             [](const Object& o) { return history_list(*o.scheduler, o.task); })
      .def("done", [](const Object& o) { return o.task->is_over(); })
      .def("cancelled",
           [](const Object& o) { return o.task->state() == schedule::TaskState::cancelled; })
      .def("result", &task_result, py::arg("timeout") = py::none())
      .def("exception", &task_exception, py::arg("timeout") = py::none())
      .def("cancel", &cancel_task)
      .def("add_done_callback", &add_done_callback, py::arg("callback"))
      .def("_wait_shortly", &wait_shortly)
      .def_property_readonly("_stepped",
                             [](const Object& o) { return !o.scheduler->has_threads(); })
      .def("__await__",
           [](const py::object& self) {
             return module_member("kernwright.schedule._waiting", "wait_in_loop")(self).attr(
                 "__await__")();
           })
      .def("__repr__", [](const Object& o) { return text_object(describe_task(o)); });
}

}  // namespace kernwright::python
