// Python's task.
#pragma once

#include "bindings/schedule/task_call.h"
#include "bindings/support/python_support.h"
#include "schedule/scheduler.h"

#include <pybind11/pybind11.h>
#include <memory>

namespace kernwright::python {

namespace py = pybind11;

/// A task with its scheduler, which lives as long, and its call.
struct TaskObject {
  std::shared_ptr<schedule::Scheduler> scheduler;
  schedule::TaskPointer task;
  std::shared_ptr<TaskCall> work;  ///< null for a task of a `with` block

  /// Lets go with the GIL held where that waits for nothing: see UnlockedDelete. The scheduler
  /// holds tasks that are not over.
  bool try_release() const noexcept { return scheduler.use_count() > 1; }
};

void bind_task(py::module_& m);

/// The states with their times and reasons.
py::list history_list(const TaskObject& self);
py::dict task_stats_dict(const TaskObject& self);

}  // namespace kernwright::python
