// Calls of Python on the threads of a scheduler.
#include "bindings/schedule/task_call.h"

#include "base/errors.h"
#include "base/format.h"
#include "bindings/launch/graph_object.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "core/graph/graph.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace kernwright::python {
namespace {

/// `with stream:` for the length of a call.
class StreamScope {
 public:
  explicit StreamScope(const Stream& stream) : stream_(stream) { enter_stream(stream); }
  ~StreamScope() {
    try {
      leave_stream(stream_);
    } catch (const std::exception&) {  // the call left it: nothing to leave
    }
  }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  const Stream& stream_;
};

/// Lone surrogates are spelled out. A null character would end the text.
std::string exception_text(PyObject* error) {
  const auto text = py::reinterpret_steal<py::object>(PyObject_Str(error));
  const auto encoded = py::reinterpret_steal<py::object>(
      text ? PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace") : nullptr);
  PyErr_Clear();
  if (!encoded) return "its __str__() failed";
  std::string bytes(PyBytes_AS_STRING(encoded.ptr()),
                    static_cast<std::size_t>(PyBytes_GET_SIZE(encoded.ptr())));
  std::replace(bytes.begin(), bytes.end(), '\0', ' ');
  return bytes;
}

}  // namespace

bool is_graph(PyObject* value) {
  static constinit KeptObject kept;
  auto* const type = reinterpret_cast<PyTypeObject*>(kept.member("kernwright._core", "Graph"));
  return PyObject_TypeCheck(value, type) != 0;
}

TaskCall::TaskCall(PyObject* callable, PyObject* const* arguments, std::size_t count)
    : callable_(Py_NewRef(callable)), arguments_(nullptr) {
  if (count == 0) return;
  arguments_ = PyTuple_New(static_cast<Py_ssize_t>(count));
  if (arguments_ == nullptr) {
    Py_DECREF(callable_);
    throw py::error_already_set();
  }
  for (std::size_t i = 0; i < count; ++i) {
    PyTuple_SET_ITEM(arguments_, static_cast<Py_ssize_t>(i), Py_NewRef(arguments[i]));
  }
}

TaskCall::~TaskCall() {
  const GilAcquire held;
  if (!held) return;  // the interpreter ends: its objects are left alone
  drop();
}

int TaskCall::traverse(visitproc visit, void* arg) const {
  Py_VISIT(callable_);
  Py_VISIT(arguments_);
  Py_VISIT(result_);
  Py_VISIT(error_);
  return 0;
}

void TaskCall::drop() {
  Py_CLEAR(callable_);
  Py_CLEAR(arguments_);
  Py_CLEAR(result_);
  Py_CLEAR(error_);
}

void TaskCall::run(const Stream& stream) {
  const GilAcquire held;
  if (!held) throw Error("the task cannot run: the interpreter ends");
  call(stream);
  Py_CLEAR(callable_);
  Py_CLEAR(arguments_);
  if (result_ == nullptr) fail();
}

void TaskCall::call(const Stream& stream) {
  if (is_graph(callable_)) {
    Graph graph = find_graph(py::reinterpret_borrow<py::object>(callable_));
    const GilRelease unlocked;
    graph.launch(stream);
    const Graph gone = std::move(graph);
  } else {
    const StreamScope scope(stream);
    PyObject* const none[1] = {nullptr};
    PyObject* const* items = none;
    std::size_t count = 0;
    if (arguments_ != nullptr) {
      items = reinterpret_cast<PyTupleObject*>(arguments_)->ob_item;
      count = static_cast<std::size_t>(PyTuple_GET_SIZE(arguments_));
    }
    {
      const StopAtExit stop;
      result_ = PyObject_Vectorcall(callable_, items, count, nullptr);
    }
    refuse_unstarted();
    return;
  }
  result_ = Py_NewRef(Py_None);
}

/// Fails for coroutines and generators: nothing of the function has run.
void TaskCall::refuse_unstarted() {
  if (result_ == nullptr) return;
  const std::string kind = Py_TYPE(result_)->tp_name;
  if (kind != "coroutine" && kind != "generator" && kind != "async_generator") return;
  if (kind == "coroutine") Py_XDECREF(PyObject_CallMethod(result_, "close", nullptr));
  Py_CLEAR(result_);
  PyErr_Clear();
  set_python_error(std::make_exception_ptr(ArgumentError(format(
      "the work of a task returned a {}, which has run nothing: the work is a plain function, "
      "and asyncio awaits the task",
      kind))));
}

/// Keeps the exception for result(), and throws its text. A cancelled launch raised it, or the
/// call.
void TaskCall::fail() {
  const py::error_already_set error;
  error_ = Py_NewRef(error.value().ptr());
  if (error.trace()) PyException_SetTraceback(error_, error.trace().ptr());
  const std::string text = exception_text(error_);
  static constinit KeptObject kept;
  PyObject* const cancelled = kept.member("concurrent.futures", "CancelledError");
  if (PyErr_GivenExceptionMatches(error_, cancelled) != 0) throw schedule::TaskCancelled(text);
  throw Error(format("{}: {}", type_name(error_), text));
}

py::object TaskCall::result() const {
  return result_ == nullptr ? py::object(py::none()) : py::reinterpret_borrow<py::object>(result_);
}

void TaskCall::raise_error() const {
  if (error_ == nullptr) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error_)), error_);
  throw py::error_already_set();
}

}  // namespace kernwright::python
