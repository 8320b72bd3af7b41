// Looks up handlers by function, and keeps handlers from recording their own calls.
#include "bindings/calls/recorded_calls.h"

#include "base/errors.h"
#include "bindings/support/bindings.h"
#include "bindings/support/python_support.h"

#include <unordered_map>
#include <utility>

namespace kernwright::python {
namespace {

thread_local bool records = false;

/// Of kernwright._grad; set once, when it is imported, and kept for good.
struct Handlers {
  std::unordered_map<PyObject*, PyObject*> by_function;
  PyObject* operators = nullptr;
  PyObject* in_place = nullptr;
  PyObject* launches = nullptr;
};

Handlers* handlers = nullptr;

/// What the dispatcher of pybind11 gets as the first argument of a call of `function`; a
/// _TypedFunction as it is.
PyObject* key_of(PyObject* function) {
  if (PyInstanceMethod_Check(function)) function = PyInstanceMethod_GET_FUNCTION(function);
  if (PyCFunction_Check(function)) return PyCFunction_GET_SELF(function);
  return function;
}

void set_handlers(const py::dict& functions, const py::function& operators,
                  const py::function& in_place, const py::function& launches) {
  auto made = std::make_unique<Handlers>();
  for (const auto& [function, handler] : functions) {
    PyObject* const key = key_of(function.ptr());
    if (key == nullptr) throw ArgumentError("a function without a place to record it");
    Py_INCREF(key);
    Py_INCREF(handler.ptr());
    made->by_function[key] = handler.ptr();
  }
  made->operators = py::object(operators).release().ptr();
  made->in_place = py::object(in_place).release().ptr();
  made->launches = py::object(launches).release().ptr();
  handlers = made.release();
}

/// Sets whether this thread records; returns whether it did.
bool set_recording(bool value) {
  if (value && handlers == nullptr) throw ArgumentError("a recording needs handlers");
  const bool before = std::exchange(records, value);
  if (before != value) recording_threads.fetch_add(value ? 1 : -1, std::memory_order_relaxed);
  return before;
}

/// Calls of this thread are recorded no longer, until the end of the scope.
class Unrecorded {
 public:
  Unrecorded() : before_(set_recording(false)) {}
  ~Unrecorded() { set_recording(before_); }
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;

 private:
  bool before_;
};

PyObject* call_unrecorded(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                          PyObject* keywords) {
  if (count < 1) {
    PyErr_SetString(PyExc_TypeError, "_unrecorded() takes a function and its arguments");
    return nullptr;
  }
  const Unrecorded scope;
  return PyObject_Vectorcall(arguments[0], arguments + 1, static_cast<std::size_t>(count - 1),
                             keywords);
}

PyObject* ask_recording(PyObject*, PyObject*) { return PyBool_FromLong(is_recording() ? 1 : 0); }

}  // namespace

bool is_recording_here() noexcept { return records; }

bool handle_recorded(PyObject* function, PyObject* const* arguments, std::size_t count,
                     PyObject* keywords, PyObject*& result) noexcept {
  const auto found = handlers->by_function.find(function);
  if (found == handlers->by_function.end()) return false;
  result = PyObject_Vectorcall(found->second, arguments, count, keywords);
  return true;
}

PyObject* note_operator(const char* name, PyObject* result, PyObject* a, PyObject* b) noexcept {
  if (result == nullptr || result == Py_NotImplemented) return result;
  PyObject* const noted =
      b == nullptr ? PyObject_CallFunction(handlers->operators, "sOO", name, result, a)
                   : PyObject_CallFunction(handlers->operators, "sOOO", name, result, a, b);
  if (noted == nullptr) {
    Py_DECREF(result);
    return nullptr;
  }
  Py_DECREF(noted);
  return result;
}

PyObject* record_in_place(const char* name, PyObject* a, PyObject* b) noexcept {
  return PyObject_CallFunction(handlers->in_place, "sOO", name, a, b);
}

bool allow_launch(const std::string& kernel, PyObject* const* arguments,
                  std::size_t count) noexcept {
  PyObject* const given = PyTuple_New(static_cast<Py_ssize_t>(count));
  if (given == nullptr) return false;
  for (std::size_t i = 0; i < count; ++i) {
    Py_INCREF(arguments[i]);
    PyTuple_SET_ITEM(given, static_cast<Py_ssize_t>(i), arguments[i]);
  }
  PyObject* const allowed = PyObject_CallFunction(handlers->launches, "sO", kernel.c_str(), given);
  Py_DECREF(given);
  Py_XDECREF(allowed);
  return allowed != nullptr;
}

void bind_recorded_calls(py::module_& m) {
  m.def("_set_handlers", &set_handlers);
  m.def("_set_recording", &set_recording);
  static PyMethodDef asked = {"_is_recording", &ask_recording, METH_NOARGS,
                              "Whether calls of this thread are recorded."};
  m.attr("_is_recording") = py::reinterpret_steal<py::object>(PyCFunction_New(&asked, nullptr));
  static PyMethodDef unrecorded = {
      "_unrecorded", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call_unrecorded)),
      METH_FASTCALL | METH_KEYWORDS,
      "_unrecorded(function, *arguments, **options)\n--\n\nCalls it without a recording."};
  m.attr("_unrecorded") = py::reinterpret_steal<py::object>(PyCFunction_New(&unrecorded, nullptr));
}

}  // namespace kernwright::python
