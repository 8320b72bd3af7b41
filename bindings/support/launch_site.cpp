// Taking and resolving the Python line of a launch.
#include "bindings/support/launch_site.h"
#include "bindings/support/gil.h"

#include "bindings/support/python_frame.h"
#include "bindings/support/python_support.h"

#include <pybind11/pybind11.h>
#include <mutex>
#include <unordered_set>

namespace kernwright::python {
namespace {

namespace py = pybind11;

/// Keeps a code object alive for good, once: a late error may ask for its line at any time.
void hold(PyCodeObject* code) {
  static PyCodeObject* last = nullptr;
  static auto* held = new std::unordered_set<PyCodeObject*>;
  if (code == last) return;
  if (held->insert(code).second) Py_INCREF(code);
  last = code;
}

int find_line(PyCodeObject* code, std::uint64_t position) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyCode_Addr2Line(code, static_cast<int>(position));
#else
  (void)code;
  return static_cast<int>(position);
#endif
}

SourceLocation resolve(const void* origin, std::uint64_t position) {
  const GilAcquire locked;
  if (!locked) return {};
  SourceLocation location;
  auto* code = static_cast<PyCodeObject*>(const_cast<void*>(origin));
  // An error may be on its way already, and the calls below must not disturb it.
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  if (PyObject* name = PyObject_GetAttrString(reinterpret_cast<PyObject*>(code), "co_filename")) {
    if (const char* text = PyUnicode_AsUTF8(name)) location.file = text;
    Py_DECREF(name);
  }
  location.line = find_line(code, position);
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
  return location;
}

/// The folder of this package, with a separator at its end; null when it cannot be told.
PyObject* package_folder() noexcept {
  static constinit KeptObject folder;
  try {
    const StopAtExit stop;
    return folder
        .get([]() -> py::object {
          const py::object path = module_member("kernwright", "__path__")[py::int_(0)];
          return py::str(path.cast<std::string>() + "/");
        })
        .ptr();
  } catch (const std::exception&) {
    return nullptr;
  }
}

bool is_library_code(PyCodeObject* code, PyObject* folder) noexcept {
  return folder != nullptr && PyUnicode_Check(code->co_filename) &&
         PyUnicode_Tailmatch(code->co_filename, folder, 0, PY_SSIZE_T_MAX, -1) == 1;
}

LaunchSite make_site(PyCodeObject* code, int position) noexcept {
  LaunchSite site;
  try {
    hold(code);
    site.origin = code;
    site.position = static_cast<std::uint64_t>(position < 0 ? 0 : position);
    site.resolve = &resolve;
  } catch (...) {
    site = {};  // no memory to remember it: the call goes on without a place
  }
  return site;
}

int position_in(PyFrameObject* frame) noexcept {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return PyFrame_GetLineNumber(frame);
#endif
}

}  // namespace

LaunchSite caller_site() noexcept {
  const FramePosition frame = innermost_frame();
  return frame.code == nullptr ? LaunchSite{} : make_site(frame.code, frame.position);
}

LaunchSite user_site() noexcept {
  PyObject* const folder = package_folder();
  const FramePosition inner = innermost_frame();
  if (inner.code != nullptr && !is_library_code(inner.code, folder)) {
    return make_site(inner.code, inner.position);
  }
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  LaunchSite site;
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const bool found = !is_library_code(code, folder);
    if (found) site = make_site(code, position_in(frame));
    Py_DECREF(code);
    PyFrameObject* const outer = found ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  return site;
}

}  // namespace kernwright::python
