// Brings messages of the log to Python, never from within the call that logs: it may hold locks of
// ours, for which a thread with Python's lock waits.
#include "bindings/support/python_log.h"

#include "base/log_line.h"
#include "base/log_sink.h"
#include "base/per_process.h"
#include "bindings/support/bindings.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace kernwright::python {
namespace {

namespace py = pybind11;
using Clock = std::chrono::system_clock;

// The main thread delivers what it logs itself, as soon as it runs Python code again. It has this
// long before the courier does.
constexpr std::chrono::milliseconds kMainsTurn{50};
constexpr std::chrono::milliseconds kCouriersRest{200};  ///< without work, then it ends
constexpr std::chrono::milliseconds kPatience{100};
constexpr std::chrono::seconds kLastPatience{10};  ///< with a handler, at the end
constexpr std::size_t kMostWaiting = 4096;

struct LogEntry {
  LogLevel level;
  std::string text;
  Clock::time_point time;
  pthread_t thread;
  bool is_mains;
};

/// What is on its way to Python.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<LogEntry> waiting;
  int deliveries = 0;         ///< threads that hand entries to Python
  bool has_courier = false;   ///< a thread of its own delivers
  bool is_main_told = false;  ///< the main thread delivers next
  bool is_closed = false;
};

Mailbox& mailbox() { return per_process<Mailbox>(); }

PyObject* receiver = nullptr;  ///< (level, text, seconds, thread); read and written with the GIL

bool is_main_thread() noexcept { return ::syscall(SYS_gettid) == ::getpid(); }

/// NOTE: without objects that let go of Python's when they go: a thread that comes back too late
/// from Python, at the end of the interpreter, is made to exit from here.
void hand_over(const LogEntry& entry) {
  if (receiver == nullptr) return write_log_line(entry.level, entry.text);
  const std::chrono::duration<double> seconds = entry.time.time_since_epoch();
  const auto size = static_cast<Py_ssize_t>(entry.text.size());
  PyObject* const text = PyUnicode_DecodeUTF8(entry.text.data(), size, "replace");
  PyObject* const result =
      PyObject_CallFunction(receiver, "sNdk", log_level_name(entry.level), text, seconds.count(),
                            static_cast<unsigned long>(entry.thread));  // NOLINT: the type of "k"
  if (result == nullptr) PyErr_WriteUnraisable(receiver);
  Py_XDECREF(result);
}

/// Waits for another thread that delivers, with the GIL given up and not for long: that one may
/// wait for a lock of this one's caller. Returns how many entries there are.
std::size_t take_turn(Mailbox& box) {
  const GilRelease unlocked;
  std::unique_lock lock(box.mutex);
  box.changed.wait_for(lock, kPatience, [&] { return box.deliveries == 0; });
  ++box.deliveries;
  return box.waiting.size();
}

std::optional<LogEntry> take_entry(Mailbox& box, bool is_courier) {
  const std::lock_guard lock(box.mutex);
  if (box.waiting.empty() || (is_courier && box.is_closed)) return std::nullopt;
  LogEntry entry = std::move(box.waiting.front());
  box.waiting.pop_front();
  return entry;
}

/// Hands over what is there, in order. With the GIL. At the end the courier leaves it to the main
/// thread.
void deliver(Mailbox& box, bool is_courier) {
  for (std::size_t left = take_turn(box); left > 0; --left) {
    const std::optional<LogEntry> entry = take_entry(box, is_courier);
    if (!entry) break;
    hand_over(*entry);
  }
  const std::lock_guard lock(box.mutex);
  --box.deliveries;
  box.changed.notify_all();
}

int deliver_in_main(void* /*unused*/) noexcept {
  try {
    Mailbox& box = mailbox();
    {
      const std::lock_guard lock(box.mutex);
      box.is_main_told = false;
    }
    const py::error_scope raised;  // by the code that was interrupted
    deliver(box, false);
  } catch (...) {
    // Out of memory: a failing log must not change the program's work.
  }
  return 0;
}

/// Whether the first entry waits for the courier, or has waited for the main thread long enough.
bool is_due(const Mailbox& box) {
  if (box.waiting.empty()) return false;
  const LogEntry& first = box.waiting.front();
  return !first.is_mains || Clock::now() - first.time >= kMainsTurn;
}

void run_courier(Mailbox& box) {
  std::unique_lock lock(box.mutex);
  Clock::time_point last = Clock::now();
  while (!box.is_closed && Clock::now() - last < kCouriersRest) {
    const auto nap = box.waiting.empty() ? kCouriersRest : kMainsTurn;
    box.changed.wait_for(lock, nap, [&] { return is_due(box) || box.is_closed; });
    if (box.is_closed || !is_due(box)) continue;
    lock.unlock();
    // Nothing gives the GIL up when this thread is made to exit: see hand_over().
    alignas(GilAcquire) std::byte place[sizeof(GilAcquire)];
    auto* const held = new (place) GilAcquire;
    const bool is_held = bool{*held};
    if (is_held) deliver(box, true);
    held->~GilAcquire();
    lock.lock();
    last = Clock::now();
    if (!is_held) break;  // the interpreter has ended
  }
  box.has_courier = false;
  box.changed.notify_all();
}

/// Signals stay with the threads of the program.
void start_courier(Mailbox& box) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([&box] { run_courier(box); }).detach();
    box.has_courier = true;
  } catch (const std::system_error&) {
    // No thread to be had: the main thread delivers, or whoever logs next gets one.
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void post(LogLevel level, std::string_view text) {
  Mailbox& box = mailbox();
  const std::lock_guard lock(box.mutex);
  if (box.is_closed || box.waiting.size() >= kMostWaiting) return write_log_line(level, text);
  const bool is_mains = is_main_thread();
  box.waiting.push_back({level, std::string(text), Clock::now(), ::pthread_self(), is_mains});
  if (is_mains && !box.is_main_told)
    box.is_main_told = Py_AddPendingCall(&deliver_in_main, nullptr) == 0;
  if (!box.has_courier) start_courier(box);
  box.changed.notify_all();
}

/// At the end of the program: what is on its way arrives, what comes later goes to stderr.
void close_log() {
  set_log_sink({});
  Mailbox& box = mailbox();
  {
    const GilRelease unlocked;
    std::unique_lock lock(box.mutex);
    box.is_closed = true;
    box.changed.notify_all();
    box.changed.wait_for(lock, kLastPatience, [&] { return !box.has_courier; });
  }
  deliver(box, false);
}

LogLevel level_of(const std::string& name) {
  const std::optional<LogLevel> level = log_level_from_name(name);
  if (!level) throw py::value_error("no level of the log: " + name);
  return *level;
}

}  // namespace

void bind_log(py::module_& m) {
  m.def("_log_to", [](const py::function& function) {
    receiver = py::object(function).release().ptr();  // kept for good: threads may still call it
    set_log_sink(&post);
  });
  m.def("_close_log", &close_log);
  m.def("_set_log_level", [](const std::string& name) { set_log_level(level_of(name)); });
  m.def("_log_level", [] { return log_level_name(log_level()); });
  m.def("_write_log_line", [](const std::string& level, const std::string& text) {
    write_log_line(level_of(level), text);
  });
}

}  // namespace kernwright::python
