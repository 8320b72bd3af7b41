// The innermost Python frame as it is, with no frame object made for it.
#pragma once

#include <Python.h>

namespace kernwright::python {

/// The place in a frame. `position` is the offset of its last instruction for PyCode_Addr2Line from
/// Python 3.11 on, its line in older versions.
struct FramePosition {
  PyCodeObject* code = nullptr;  ///< borrowed from the frame; null where no Python code runs
  int position = 0;
};

/// The frame of the Python code that called into C. PyThreadState_GetFrame would allocate an object
/// for each launch. Needs the GIL.
FramePosition innermost_frame() noexcept;

}  // namespace kernwright::python
