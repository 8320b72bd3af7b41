// Scopes of the current device and stream, kept per thread, and the arguments with their names.
#include "bindings/support/current.h"

#include "base/errors.h"
#include "base/format.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "core/runtime.h"
#include "jit/cache/code_cache.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <vector>

namespace kernwright::python {
namespace {

struct Scope {
  Device* previous;
  Device* entered;
  Stream stream;  // empty for `with device:`
};

/// The scopes entered by a thread. Python's state of the thread owns them: it ends with the GIL
/// held and the driver there. A thread_local's destructor could not rely on this.
struct ThreadScopes {
  pthread_t thread = ::pthread_self();
  std::vector<Scope> stack;
};

constexpr const char* kScopesKey = "kernwright.scopes";
thread_local ThreadScopes* thread_scopes = nullptr;

/// Scopes still entered are left with the thread. Another thread ends the state after a fork (the
/// driver must then be left alone) and at exit.
void end_scopes(PyObject* capsule) {
  auto* const ended = static_cast<ThreadScopes*>(PyCapsule_GetPointer(capsule, kScopesKey));
  if (ended == nullptr || ::pthread_equal(ended->thread, ::pthread_self()) == 0) return;
  thread_scopes = nullptr;
  const GilRelease unlocked;
  delete ended;
}

std::vector<Scope>& scopes() {
  if (thread_scopes != nullptr) [[likely]]
    return thread_scopes->stack;
  auto made = std::make_unique<ThreadScopes>();
  const auto capsule =
      py::reinterpret_steal<py::object>(PyCapsule_New(made.get(), kScopesKey, &end_scopes));
  PyObject* const state = PyThreadState_GetDict();
  if (!capsule) throw py::error_already_set();
  if (state == nullptr || PyDict_SetItemString(state, kScopesKey, capsule.ptr()) != 0) {
    PyCapsule_SetDestructor(capsule.ptr(), nullptr);
    PyErr_Clear();
    throw Error("a `with` of a device or stream cannot begin while the thread ends");
  }
  thread_scopes = made.release();
  return thread_scopes->stack;
}

[[noreturn]] void refuse(const char* what, const char* wanted, py::handle got) {
  throw ArgumentError(format("{} must be {}, got {}", what, wanted, type_name(got)));
}

/// An int, or anything with __index__ but bool; nothing when it is no integer.
std::optional<std::int64_t> integer(PyObject* value, const char* what) {
  if (PyBool_Check(value) || !PyIndex_Check(value)) return std::nullopt;
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value));
  if (!index) {
    const py::error_already_set error;
    if (!error.matches(PyExc_TypeError)) throw error;
    return std::nullopt;  // an array; only some are an index
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) {
    throw LaunchConfigError(format("{} of {} is out of range", what, short_repr(index)));
  }
  return number;
}

/// Only integers have one; an integer beyond int names no device.
std::optional<std::int64_t> device_index(py::handle value) {
  try {
    return integer(value.ptr(), "a device index");
  } catch (const LaunchConfigError&) {
    throw DeviceNotFound(format("there is no device {}", short_repr(value)));
  }
}

std::uint32_t extent(PyObject* value, const char* what, std::int64_t least) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (PyLong_CheckExact(value)) [[likely]] {  // most are, at each launch
    int overflow = 0;
    const std::int64_t plain = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0 && plain >= least && plain <= kMost) return static_cast<std::uint32_t>(plain);
  }
  const std::optional<std::int64_t> number = integer(value, what);
  if (!number) refuse(what, "an int or up to three ints", value);
  if (*number < least || *number > kMost) {
    throw LaunchConfigError(
        format("{} of {}: each extent must be between {} and {}", what, *number, least, kMost));
  }
  return static_cast<std::uint32_t>(*number);
}

std::optional<std::uintptr_t> handle_attribute(py::handle value, const char* name) {
  if (!has_attribute(value, name)) return std::nullopt;
  const py::object handle = value.attr(name);
  if (!PyLong_Check(handle.ptr())) return std::nullopt;
  return handle.cast<std::uintptr_t>();
}

/// Runs kernwright._jit.kernels.rehearse(), once in a process: the first kernel from the disk then
/// takes 0.39 ms instead of 0.55 (beside an H100). The caller gets its exceptions: a
/// handler of signals may run meanwhile and raise anything.
void rehearse() {
  static std::atomic<bool> begun = false;
  if (begun.exchange(true)) return;
  py::module_::import("kernwright._jit.kernels").attr("rehearse")();
}

}  // namespace

Device& current_device() {
  Runtime& runtime = Runtime::get();
  if (Device* const known = runtime.known_device()) return *known;
  Device* device = nullptr;
  bool has_cache = false;
  {
    const GilRelease unlocked;  // the first use looks for drivers
    device = &runtime.current_device();
    has_cache = look_ahead();  // a tenth of a millisecond now, not when the first kernel is wanted
  }
  if (has_cache) rehearse();
  return *device;
}

Device& device_argument(py::handle value) {
  if (value.is_none()) return current_device();
  if (py::isinstance<DeviceObject>(value)) return value.cast<DeviceObject&>().newest();
  Runtime& runtime = Runtime::get();
  if (PyUnicode_Check(value.ptr())) {
    const std::string name = name_argument(value, "the name of a device");
    const GilRelease unlocked;
    return runtime.device(name);
  }
  const std::optional<std::int64_t> index = device_index(value);
  if (!index) refuse("a device", "a Device, an index or a name", value);
  if (*index < 0 || *index > std::numeric_limits<int>::max()) {
    throw DeviceNotFound(format("there is no device {}: indices count from 0", *index));
  }
  const GilRelease unlocked;
  return runtime.device(static_cast<int>(*index));
}

Stream current_stream(Device& device) {
  if (thread_scopes == nullptr) return {};
  const std::vector<Scope>& stack = thread_scopes->stack;
  for (auto scope = stack.rbegin(); scope != stack.rend(); ++scope) {
    if (scope->stream && &scope->stream.device() == &device) return scope->stream;
  }
  return {};
}

void enter_device(Device& device) {
  scopes().push_back({&current_device(), &device, {}});
  Runtime::get().set_current_device(device);
}

void enter_stream(const Stream& stream) {
  scopes().push_back({&current_device(), &stream.device(), stream});
  Runtime::get().set_current_device(stream.device());
}

namespace {

/// Leaves the last scope of which `is_left` is true: mostly the last of all; a generator may end
/// others in another order.
template <typename Predicate>
void leave_last(const char* what, Predicate&& is_left) {
  std::vector<Scope> none;
  std::vector<Scope>& stack = thread_scopes == nullptr ? none : thread_scopes->stack;
  const auto found = std::find_if(stack.rbegin(), stack.rend(), is_left);
  if (found == stack.rend()) {
    throw InvalidArgument(
        format("{} is left, but no `with` of it is open in this thread: it was left before, or "
               "entered in another thread",
               what));
  }
  const auto left = std::prev(found.base());
  Device& previous = *left->previous;
  const bool is_last = std::next(left) == stack.end();
  if (!is_last) std::next(left)->previous = &previous;
  {
    const GilRelease unlocked;  // it may be the last to hold its stream
    stack.erase(left);
  }
  if (is_last) Runtime::get().set_current_device(previous);
}

}  // namespace

void leave_scope() {
  leave_last("a device or stream", [](const Scope&) { return true; });
}

void leave_device(const Device& device) {
  leave_last("a kw.Device",
             [&](const Scope& scope) {  // it may have been reset since it was entered
               return !scope.stream && &scope.entered->newest() == &device;
             });
}

void leave_stream(const Stream& stream) {
  leave_last("a kw.Stream", [&](const Scope& scope) {
    return scope.stream && scope.entered == &stream.device() &&
           scope.stream.handle() == stream.handle();
  });
}

std::optional<std::uintptr_t> stream_handle(py::handle value) {
  if (py::isinstance<Stream>(value)) {
    return reinterpret_cast<std::uintptr_t>(value.cast<const Stream&>().handle());
  }
  if (PyLong_Check(value.ptr()) && !PyBool_Check(value.ptr())) {
    return value.cast<std::uintptr_t>();
  }
  if (has_attribute(value, "__cuda_stream__")) {
    const py::object protocol = value.attr("__cuda_stream__");
    const py::object pair = PyCallable_Check(protocol.ptr()) ? protocol() : protocol;
    if (!PySequence_Check(pair.ptr()) || py::len(pair) != 2) return std::nullopt;
    return pair[py::int_(1)].cast<std::uintptr_t>();
  }
  if (const auto torch = handle_attribute(value, "cuda_stream")) return torch;
  return handle_attribute(value, "ptr");
}

Stream stream_argument(py::handle value, Device& device) {
  if (value.is_none()) return {};
  if (py::isinstance<Stream>(value)) return value.cast<const Stream&>();
  std::optional<std::uintptr_t> handle;
  try {
    handle = stream_handle(value);
  } catch (const py::cast_error&) {
    handle.reset();
  }
  if (!handle) {
    refuse("a stream",
           "a kw.Stream, a handle, None, or an object with __cuda_stream__, cuda_stream or ptr",
           value);
  }
  if (*handle == 0) return Stream::legacy(device);
  return Stream::borrow(device, reinterpret_cast<CUstream>(*handle),
                        keep_alive(py::reinterpret_borrow<py::object>(value)));
}

Dim3 dim3_argument(PyObject* value, const char* what, std::int64_t least) {
  if (!PyTuple_Check(value) && !PyList_Check(value)) return {extent(value, what, least), 1, 1};
  Dim3 extents;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
  if (count < 1 || count > 3) {
    throw LaunchConfigError(format("{} has one to three extents, got {}", what, count));
  }
  PyObject** items = PySequence_Fast_ITEMS(value);
  extents.x = extent(items[0], what, least);
  if (count > 1) extents.y = extent(items[1], what, least);
  if (count > 2) extents.z = extent(items[2], what, least);
  return extents;
}

std::uint32_t shared_bytes_argument(PyObject* value) {
  const std::optional<std::int64_t> bytes = integer(value, "shared_bytes");
  if (!bytes) refuse("shared_bytes", "an int", value);
  if (*bytes < 0 || *bytes > std::numeric_limits<std::uint32_t>::max()) {
    throw LaunchConfigError(
        format("shared_bytes of {} is out of range: bytes of dynamic shared "
               "memory, at least 0",
               *bytes));
  }
  return static_cast<std::uint32_t>(*bytes);
}

std::optional<std::chrono::nanoseconds> timeout_argument(py::handle seconds) {
  if (seconds.is_none()) return std::nullopt;
  const double value = PyFloat_AsDouble(seconds.ptr());
  if (value == -1.0 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (std::isnan(value) || value < 0) {
    throw InvalidArgument(format("a timeout of {} seconds: it must be at least 0", value));
  }
  // Beyond the range of nanoseconds (292 years) there is no limit.
  if (value > 9e9) return std::nullopt;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(value * 1e9));
}

void settle(Device& device) {
  const Stream stream = current_stream(device);
  const GilRelease unlocked;
  if (stream) {
    stream.synchronize();
  } else {
    device.synchronize();
  }
}

}  // namespace kernwright::python
