// A call of Python as the work of a task.
#pragma once

#include "schedule/task.h"

#include <pybind11/pybind11.h>
#include <cstddef>

namespace kernwright::python {

namespace py = pybind11;

/// Calls `callable(*arguments)` with the task's stream current, or launches a kw.Graph on it.
/// Shared by the task and by Python's object of it, which finds the result here.
class TaskCall final : public schedule::Work {
 public:
  /// The GIL must be held, as for take_result() and raise_error().
  TaskCall(PyObject* callable, PyObject* const* arguments, std::size_t count);
  ~TaskCall() override;
  TaskCall(const TaskCall&) = delete;
  TaskCall& operator=(const TaskCall&) = delete;

  void run(const Stream& stream) override;

  /// What the call returned; None before.
  py::object result() const;
  /// Raises what the call raised; returns where it raised nothing.
  void raise_error() const;
  /// For the garbage collector: all objects of the call.
  int traverse(visitproc visit, void* arg) const;
  void drop();

 private:
  void call(const Stream& stream);
  void refuse_unstarted();
  [[noreturn]] void fail();

  PyObject* callable_;  // owned, as all below; null after the call
  PyObject* arguments_;
  PyObject* result_ = nullptr;
  PyObject* error_ = nullptr;
};

/// Whether `value` is a kw.Graph.
bool is_graph(PyObject* value);

}  // namespace kernwright::python
