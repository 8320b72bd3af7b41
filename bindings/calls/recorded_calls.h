// The calls that a recording of gradients takes over: kernwright._grad has their handlers.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstddef>
#include <string>

namespace kernwright::python {

namespace py = pybind11;

/// How many threads record; 0 costs a call one load of this word.
inline std::atomic<int> recording_threads = 0;

/// Whether this thread records and is not inside a handler.
bool is_recording_here() noexcept;

inline bool is_recording() noexcept {
  return recording_threads.load(std::memory_order_relaxed) != 0 && is_recording_here();
}

/// What a function does without a recording; arguments as in vectorcall.
using PlainCall = PyObject* (*)(PyObject* function, PyObject* const* arguments, std::size_t count,
                                PyObject* keywords);

/// Puts what `function` returns inside of a recording into `result` and returns true; false where
/// the table has no entry for it. `function` is a _TypedFunction, or what pybind11 passes to its
/// dispatcher; `plain` calls it.
bool handle_recorded(PyObject* function, PlainCall plain, PyObject* const* arguments,
                     std::size_t count, PyObject* keywords, PyObject*& result) noexcept;

/// Notes an operator's result by the rule of the elementwise function `name`. Null, with an error
/// set and `result` released, when that failed.
PyObject* note_operator(const char* name, PyObject* result, PyObject* a, PyObject* b) noexcept;

/// a <operation>= b inside of a recording; a new reference to `a`, or null with an error set.
PyObject* record_in_place(const char* name, PyObject* a, PyObject* b) noexcept;

/// Before a launch: an error is set and false returned where an argument has a gradient.
bool allow_launch(const std::string& kernel, PyObject* const* arguments,
                  std::size_t count) noexcept;

void bind_recorded_calls(py::module_& m);

}  // namespace kernwright::python
