// Python's task.
#pragma once

#include "bindings/schedule/task_call.h"
#include "bindings/support/python_support.h"
#include "schedule/scheduler.h"

#include <pybind11/pybind11.h>
#include <memory>

namespace kernwright::python {

namespace py = pybind11;

/// A task, Python's scheduler and the call. The garbage collector sees both references. The end
/// needs the GIL and waits for nothing: the scheduler holds tasks that are not over.
struct TaskObject {
  py::object owner;                ///< Python's scheduler
  schedule::Scheduler* scheduler;  ///< that of the owner
  schedule::TaskPointer task;
  std::shared_ptr<TaskCall> work;  ///< null for a task of a `with` block
};

void bind_task(py::module_& m);

/// The states with their times and reasons.
py::list history_list(const schedule::Scheduler& scheduler, const schedule::TaskPointer& task);
py::dict task_stats_dict(const schedule::Scheduler& scheduler, const schedule::TaskPointer& task);

}  // namespace kernwright::python
