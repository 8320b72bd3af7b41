// Blocks of Python as tasks.
#pragma once

#include "schedule/scheduler.h"

#include <pybind11/pybind11.h>
#include <memory>

namespace kernwright::python {

namespace py = pybind11;

void bind_blocks(py::module_& m);

/// The object of `with scheduler.task(...)`.
/// `owner` is Python's object of the scheduler.
py::object make_block_task(const py::object& owner, std::shared_ptr<schedule::Scheduler> scheduler,
                           schedule::TaskSpec spec);
/// The object of a `with` block in which each launch is a task.
py::object make_block_launches(std::shared_ptr<schedule::Scheduler> scheduler,
                               schedule::TaskSpec spec);

}  // namespace kernwright::python
