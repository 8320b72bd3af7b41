// Limits of a wait for a compile, as Python gives them.
#pragma once

#include "jit/compile/compile_wait.h"

#include <pybind11/pybind11.h>
#include <atomic>
#include <memory>

namespace kernwright::python {

namespace py = pybind11;

/// Cancels a compile; Python's futures hold one each.
struct StopObject {
  StopFlag flag = std::make_shared<std::atomic<bool>>(false);
};

/// The limits of this thread with `timeout` (seconds or None) and the flag of `stop` (may be null).
/// Throws InvalidArgument for a negative time.
WaitLimits wait_limits_argument(const py::object& timeout, const StopObject* stop);

/// Sets the Python error of an ended wait: the exception of the signal's handler.
void restore_interrupt();

}  // namespace kernwright::python
