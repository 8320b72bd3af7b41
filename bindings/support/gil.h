// Giving up Python's global lock around waiting work, also when the interpreter ends meanwhile.
#pragma once

#include <pybind11/pybind11.h>
#include <utility>

namespace kernwright::python {

/// Around a call that runs code of Python, where a noexcept function, a handler of all exceptions
/// or an object of Python in the same scope is on the stack.
///
/// NOTE: at the end of an interpreter, a thread that asks for the lock is made to exit (before
/// Python 3.14): pthread_exit() unwinds the stack. A destructor on the stack would touch Python
/// without the lock, and a function that lets no exception pass would end the process. So the
/// thread stops for good where the unwinding reaches a StopAtExit, GilAcquire or GilRelease. A
/// handler of exceptions cannot stop the thread: inside another handler C++ ends the process.
class StopAtExit {
 public:
  StopAtExit() = default;
  ~StopAtExit();
  StopAtExit(const StopAtExit&) = delete;
  StopAtExit& operator=(const StopAtExit&) = delete;
};

/// Lets other threads of Python run while it lives. Made and destroyed on one thread, with the lock
/// held before and after; that thread may hold no lock of ours when it is destroyed. At the end of
/// the interpreter a daemon thread stops in it for good.
class GilRelease {
 public:
  GilRelease() noexcept;
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

/// Whether the interpreter ends: threads of Python, but for the one that ends it, have stopped or
/// stop soon.
bool is_interpreter_ending() noexcept;

/// Has Python tell when it begins to end. Once, when the module is made.
void watch_interpreter();

}  // namespace kernwright::python
