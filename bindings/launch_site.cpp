// Taking and resolving the Python line of a launch.
#include "launch_site.h"

#include <pybind11/pybind11.h>
#include <mutex>
#include <unordered_set>

namespace kernwright::python {
namespace {

/// Keeps a code object alive for good, once: a late error may ask for its line at any time.
void hold(PyCodeObject* code) {
  static PyCodeObject* last = nullptr;
  static auto* held = new std::unordered_set<PyCodeObject*>;
  if (code == last) return;
  if (held->insert(code).second) Py_INCREF(code);
  last = code;
}

int line_of(PyCodeObject* code, std::uint64_t position) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyCode_Addr2Line(code, static_cast<int>(position));
#else
  (void)code;
  return static_cast<int>(position);
#endif
}

SourceLocation resolve(const void* origin, std::uint64_t position) {
  if (!Py_IsInitialized()) return {};
  const PyGILState_STATE state = PyGILState_Ensure();
  SourceLocation location;
  auto* code = static_cast<PyCodeObject*>(const_cast<void*>(origin));
  // An error may be on its way already, and the calls below must not disturb it.
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  if (PyObject* name = PyObject_GetAttrString(reinterpret_cast<PyObject*>(code), "co_filename")) {
    if (const char* text = PyUnicode_AsUTF8(name)) location.file = text;
    Py_DECREF(name);
  }
  location.line = line_of(code, position);
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
  return location;
}

}  // namespace

LaunchSite caller_site() noexcept {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  if (frame == nullptr) return {};
  PyCodeObject* code = PyFrame_GetCode(frame);
#if PY_VERSION_HEX >= 0x030B0000
  const int position = PyFrame_GetLasti(frame);
#else
  const int position = PyFrame_GetLineNumber(frame);
#endif
  Py_DECREF(frame);
  LaunchSite site;
  try {
    hold(code);
    site.origin = code;
    site.position = static_cast<std::uint64_t>(position < 0 ? 0 : position);
    site.resolve = &resolve;
  } catch (...) {
    site = {};  // no memory to remember it: the launch goes on without a place
  }
  Py_DECREF(code);
  return site;
}

}  // namespace kernwright::python
