// Giving up Python's global lock around waiting work, also when the interpreter ends meanwhile.
#pragma once

#include <pybind11/pybind11.h>
#include <utility>

namespace kernwright::python {

/// Lets other threads of Python run while it lives. Made and destroyed on one thread, with the lock
/// held before and after; that thread may hold no lock of ours when it is destroyed.
///
/// NOTE: at the end of an interpreter, a thread that asks for its lock is made to exit (before
/// Python 3.14). From within C++ this would end the process. A daemon thread that comes back then
/// stops here for good instead.
class GilRelease {
 public:
  GilRelease() noexcept : state_(PyEval_SaveThread()) {}
  ~GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

/// Calls `call` with the lock given up: for driver calls. They may wait for a thread in need of the
/// lock (a host function, a profiler of Python's frames).
template <typename Call>
auto without_gil(Call&& call) {
  const GilRelease unlocked;
  return call();
}

/// Lets go of what `value` owns with the lock given up: streams, events and modules end with a call
/// of the driver.
template <typename T>
void drop_without_gil(T& value) noexcept {
  const GilRelease unlocked;
  const T gone = std::move(value);
}

/// Takes the lock in any thread, also in one unknown to Python, and in one that holds it already.
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
