// Leave to take Python's global lock while the interpreter ends.
#include "bindings/support/gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace kernwright::python {
namespace {

namespace py = pybind11;

std::atomic<bool> is_ending = false;
std::atomic<int> returning = 0;  ///< threads in wait for the lock
pthread_t ending_thread;         ///< valid once is_ending

/// Runs with the lock, before Python refuses it to other threads. Those that ask for it already are
/// let in first; whoever comes later stops.
void begin_to_end() {
  constexpr int kPatience = 2000;  // ms: a thread without the lock by then never gets it
  ending_thread = ::pthread_self();
  is_ending.store(true);
  for (int waited = 0; returning.load() > 0 && waited < kPatience; ++waited) {
    PyThreadState* const state = PyEval_SaveThread();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(state);
  }
}

/// Whether this thread may still ask for the lock; then it is counted until it has it.
bool may_ask() noexcept {
  returning.fetch_add(1);
  if (!is_ending.load() || ::pthread_equal(ending_thread, ::pthread_self()) != 0) return true;
  returning.fetch_sub(1);
  return false;
}

void begin_forked_child() noexcept { returning.store(0); }

/// Whether Python makes this thread exit, so that the lock is another thread's.
bool is_made_to_exit() noexcept {
  if (!is_ending.load() || ::pthread_equal(ending_thread, ::pthread_self()) != 0) return false;
  return Py_IsInitialized() == 0 || PyGILState_Check() == 0;
}

[[noreturn]] void stop_thread() noexcept {
  while (true) ::pause();
}

PyThreadState* give_up_lock() noexcept {
  if (is_made_to_exit()) stop_thread();
  return PyEval_SaveThread();
}

}  // namespace

StopAtExit::~StopAtExit() {
  if (is_made_to_exit()) stop_thread();
}

GilRelease::GilRelease() noexcept : state_(give_up_lock()) {}

GilRelease::~GilRelease() {
  if (!may_ask()) stop_thread();
  PyEval_RestoreThread(state_);
  returning.fetch_sub(1);
}

GilAcquire::GilAcquire() noexcept {
  if (Py_IsInitialized() == 0 || !may_ask()) return;
  state_ = PyGILState_Ensure();
  returning.fetch_sub(1);
  held_ = true;
}

GilAcquire::~GilAcquire() {
  if (!held_) return;
  if (is_made_to_exit()) stop_thread();
  PyGILState_Release(state_);
}

bool is_interpreter_ending() noexcept { return is_ending.load(); }

void watch_interpreter() {
  ::pthread_atfork(nullptr, nullptr, begin_forked_child);
  py::module_::import("atexit").attr("register")(py::cpp_function(&begin_to_end));
}

}  // namespace kernwright::python
