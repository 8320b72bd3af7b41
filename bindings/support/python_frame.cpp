// Reading the interpreter's own frame; its layout is public in some versions of Python only.
#include <Python.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
// Python 3.11 has frames without objects but no function to read one.
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

#include "bindings/support/python_frame.h"

namespace kernwright::python {

#if PY_VERSION_HEX >= 0x030C0000

FramePosition innermost_frame() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  _PyInterpreterFrame* const frame = PyThreadState_Get()->current_frame;
#else
  _PyInterpreterFrame* const frame = PyThreadState_Get()->cframe->current_frame;
#endif
  if (frame == nullptr) return {};
  PyObject* const code = PyUnstable_InterpreterFrame_GetCode(frame);  // a reference of our own
  if (code == nullptr || !PyCode_Check(code)) {
    Py_XDECREF(code);
    return {};
  }
  Py_DECREF(code);  // the frame has another
  return {reinterpret_cast<PyCodeObject*>(code), PyUnstable_InterpreterFrame_GetLasti(frame)};
}

#elif PY_VERSION_HEX >= 0x030B0000

FramePosition innermost_frame() noexcept {
  const _PyInterpreterFrame* const frame = PyThreadState_Get()->cframe->current_frame;
  if (frame == nullptr || frame->f_code == nullptr) return {};
  const auto executed = frame->prev_instr - _PyCode_CODE(frame->f_code);
  return {frame->f_code, static_cast<int>(executed) * static_cast<int>(sizeof(_Py_CODEUNIT))};
}

#else

FramePosition innermost_frame() noexcept {
  // These frames are objects already.
  PyFrameObject* const frame = PyThreadState_GetFrame(PyThreadState_Get());
  if (frame == nullptr) return {};
  PyCodeObject* const code = PyFrame_GetCode(frame);
  const FramePosition found{code, PyFrame_GetLineNumber(frame)};
  Py_DECREF(code);
  Py_DECREF(frame);
  return found;
}

#endif

}  // namespace kernwright::python
