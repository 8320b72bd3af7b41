// Notes calls by the rules of their functions, or hands them to handlers, whose own calls are not
// recorded.
#include "bindings/calls/recorded_calls.h"

#include "base/errors.h"
#include "bindings/calls/open_recordings.h"
#include "bindings/calls/recorded_node.h"
#include "bindings/calls/recording.h"
#include "bindings/support/bindings.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

thread_local bool records = false;

/// What a recording does with a function: see Rule in kernwright/_grad/calls.py. The objects are
/// kept for good.
struct Entry {
  PyObject* handler = nullptr;  ///< of calls with `option`; without a rule, of all calls
  PyObject* rule = nullptr;     ///< null: there is none
  PyObject* name = nullptr;     ///< None: the first argument is the name
  bool is_joint = false;
  PyObject* option = nullptr;
  std::size_t option_at = 0;  ///< its position among the arguments
};

/// Of kernwright._grad; set once, when it is imported, and kept for good.
struct Handlers {
  std::unordered_map<PyObject*, Entry> by_function;
  PyObject* elementwise = nullptr;  ///< the rules of elementwise functions by name
  PyObject* in_place = nullptr;
  PyObject* launches = nullptr;
};

Handlers* handlers = nullptr;

/// What the dispatcher of pybind11 gets as the first argument of a call of `function`; a
/// _TypedFunction as it is.
PyObject* function_key(PyObject* function) {
  if (PyInstanceMethod_Check(function)) function = PyInstanceMethod_GET_FUNCTION(function);
  if (PyCFunction_Check(function)) return PyCFunction_GET_SELF(function);
  return function;
}

PyObject* kept(py::object object) { return object.release().ptr(); }

/// Of a handler, or of the fields of a Rule.
Entry make_entry(const py::object& value) {
  if (PyTuple_Check(value.ptr()) == 0) return {.handler = kept(value)};
  const auto fields = value.cast<py::tuple>();
  return {.handler = kept(fields[3]),
          .rule = kept(fields[0]),
          .name = kept(fields[1]),
          .is_joint = fields[2].cast<bool>(),
          .option = kept(fields[4]),
          .option_at = fields[5].cast<std::size_t>()};
}

void set_handlers(const py::dict& functions, const py::dict& elementwise,
                  const py::function& in_place, const py::function& launches) {
  auto made = std::make_unique<Handlers>();
  for (const auto& [function, value] : functions) {
    PyObject* const key = function_key(function.ptr());
    if (key == nullptr) throw ArgumentError("a function without a place to record it");
    Py_INCREF(key);
    made->by_function[key] = make_entry(py::reinterpret_borrow<py::object>(value));
  }
  made->elementwise = kept(elementwise);
  made->in_place = kept(in_place);
  made->launches = kept(launches);
  handlers = made.release();
}

/// Sets whether this thread records; returns whether it did.
bool set_recording(bool value) {
  if (value && handlers == nullptr) throw ArgumentError("a recording needs handlers");
  const bool before = std::exchange(records, value);
  if (before != value) recording_threads.fetch_add(value ? 1 : -1, std::memory_order_relaxed);
  return before;
}

/// Calls of this thread are recorded no longer, until the end of the scope. The thread is still one
/// of `recording_threads`.
class Unrecorded {
 public:
  Unrecorded() : before_(std::exchange(records, false)) {}
  ~Unrecorded() { records = before_; }
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

/// The arguments of a call, as in vectorcall.
struct Arguments {
  PyObject* const* values;
  std::size_t positional;
  PyObject* keywords;

  std::size_t named() const {
    return keywords == nullptr ? 0 : static_cast<std::size_t>(PyTuple_GET_SIZE(keywords));
  }
  std::size_t size() const { return positional + named(); }
};

/// Whether the call is one for the handler: its option is neither None, nor the empty string, nor
/// an index that makes a view.
bool has_option(const Entry& entry, const Arguments& given) {
  if (entry.rule == nullptr) return true;
  if (entry.handler == Py_None) return false;
  PyObject* value = nullptr;
  if (entry.option_at < given.positional) {
    value = given.values[entry.option_at];
  } else {
    for (std::size_t i = 0; i < given.named() && value == nullptr; ++i) {
      PyObject* const name = PyTuple_GET_ITEM(given.keywords, static_cast<Py_ssize_t>(i));
      if (PyUnicode_Compare(name, entry.option) == 0) value = given.values[given.positional + i];
    }
  }
  if (value == nullptr || value == Py_None) return false;
  if (PyUnicode_Check(value) != 0) return PyUnicode_GetLength(value) != 0;
  return !is_basic_index(value);
}

/// rule(result, *arguments, **keywords)
py::object apply_rule(const Entry& entry, PyObject* result, const Arguments& given) {
  std::array<PyObject*, 16> few;
  std::vector<PyObject*> many;
  PyObject** all = few.data();
  if (given.size() + 1 > few.size()) {
    many.resize(given.size() + 1);
    all = many.data();
  }
  all[0] = result;
  std::copy_n(given.values, given.size(), all + 1);
  PyObject* const made = PyObject_Vectorcall(entry.rule, all, given.positional + 1, given.keywords);
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

void note_result(const Entry& entry, PyObject* result, const Arguments& given) {
  const py::object made = apply_rule(entry, result, given);
  PyObject* const name =
      entry.name == Py_None && given.positional > 0 ? given.values[0] : entry.name;
  if (!entry.is_joint) return note(name, made.ptr(), result);
  const py::object parts = tuple_from(made.ptr());
  if (PyTuple_GET_SIZE(parts.ptr()) != 3) {
    throw ArgumentError("a joint rule gives operands, results and a pullback");
  }
  note_joint(name, item(parts, 0), item(parts, 1), item(parts, 2));
}

/// `result`, which note() tells the open recordings of; null, with an error set, where that fails.
template <typename Note>
PyObject* noted(PyObject* result, Note&& note) noexcept {
  const bool done = guarded(false, [&] {
    note();
    return true;
  });
  if (!done) Py_CLEAR(result);
  return result;
}

/// A str for each name of an operation, which is a constant of the program.
PyObject* name_object(const char* name) {
  static auto* const names = new std::unordered_map<const char*, PyObject*>();
  PyObject*& found = (*names)[name];
  if (found == nullptr) found = PyUnicode_InternFromString(name);
  if (found == nullptr) throw py::error_already_set();
  return found;
}

}  // namespace

bool is_recording_here() noexcept { return records; }

bool handle_recorded(PyObject* function, PlainCall plain, PyObject* const* arguments,
                     std::size_t count, PyObject* keywords, PyObject*& result) noexcept {
  const auto found = handlers->by_function.find(function);
  if (found == handlers->by_function.end()) return false;
  const Entry& entry = found->second;
  const Arguments given{arguments, static_cast<std::size_t>(PyVectorcall_NARGS(count)), keywords};
  if (has_option(entry, given)) {
    const StopAtExit stop;
    result = PyObject_Vectorcall(entry.handler, arguments, count, keywords);
    return true;
  }
  {
    const Unrecorded scope;
    result = plain(function, arguments, count, keywords);
  }
  if (result == nullptr) return true;
  result = noted(result, [&] {
    if (concerns_recordings(arguments, given.size())) note_result(entry, result, given);
  });
  return true;
}

PyObject* note_operator(const char* name, PyObject* result, PyObject* a, PyObject* b) noexcept {
  if (result == nullptr || result == Py_NotImplemented) return result;
  const std::array<PyObject*, 3> operands{result, a, b};
  const std::size_t count = b == nullptr ? 2 : 3;
  return noted(result, [&] {
    if (!concerns_recordings(operands.data() + 1, count - 1)) return;
    PyObject* const said = name_object(name);
    PyObject* const rule = PyDict_GetItemWithError(handlers->elementwise, said);
    if (rule == nullptr) {
      if (PyErr_Occurred() != nullptr) throw py::error_already_set();
      return;
    }
    PyObject* const pairs = PyObject_Vectorcall(rule, operands.data(), count, nullptr);
    if (pairs == nullptr) throw py::error_already_set();
    note(said, py::reinterpret_steal<py::object>(pairs).ptr(), result);
  });
}

PyObject* record_in_place(const char* name, PyObject* a, PyObject* b) noexcept {
  const StopAtExit stop;
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
  const StopAtExit stop;
  PyObject* const allowed = PyObject_CallFunction(handlers->launches, "sO", kernel.c_str(), given);
  Py_DECREF(given);
  Py_XDECREF(allowed);
  return allowed != nullptr;
}

void bind_recorded_calls(py::module_& m) {
  bind_recorded_node(m);
  bind_recording(m);
  bind_open_recordings(m);
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
