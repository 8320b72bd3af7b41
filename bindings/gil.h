// Giving up Python's global lock around work that waits, also when the interpreter ends meanwhile.
#pragma once

#include <pybind11/pybind11.h>

namespace kernwright::python {

/// Lets other threads of Python run while it lives. Made and destroyed on one thread, which holds
/// the lock before and after; it may not hold a lock of ours when it is destroyed.
///
/// NOTE: an interpreter that ends makes a thread that asks for its lock exit (before Python 3.14),
/// which from within C++ would end the process. A daemon thread that comes back then stops here for
/// good instead.
class GilRelease {
 public:
  GilRelease() noexcept : state_(PyEval_SaveThread()) {}
  ~GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

/// Takes the lock in any thread, also one that Python does not know, and one that holds it already.
/// Converts to false where nobody may have it any more: then Python's objects must be left alone.
class GilAcquire {
 public:
  GilAcquire() noexcept;
  ~GilAcquire();
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;
  explicit operator bool() const noexcept { return held_; }

 private:
  PyGILState_STATE state_ = PyGILState_UNLOCKED;
  bool held_ = false;
};

/// Has Python tell when it begins to end. Once, when the module is made.
void watch_interpreter();

}  // namespace kernwright::python
