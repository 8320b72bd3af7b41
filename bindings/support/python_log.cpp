// Brings messages of the log to Python, never from within the call that logs: it may hold locks of
// ours, for which a thread with Python's lock waits.
#include "bindings/support/python_log.h"

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
#include <exception>
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
using Clock = std::chrono::steady_clock;

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
  std::chrono::system_clock::time_point time;
  Clock::time_point posted;
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

/// False after an exception that handlers of `logging` do not catch (Ctrl-C), which is set then: it
/// is for the program of the main thread. The courier has none to tell.
///
/// NOTE: no objects here that release Python's objects in their destructors: a thread that returns
/// too late from Python, at the end of the interpreter, is made to exit from here.
bool hand_over(const LogEntry& entry, bool is_courier) {
  if (receiver == nullptr) {
    write_log_line(entry.level, entry.text);
    return true;
  }
  const std::chrono::duration<double> seconds = entry.time.time_since_epoch();
  const auto size = static_cast<Py_ssize_t>(entry.text.size());
  PyObject* const text = PyUnicode_DecodeUTF8(entry.text.data(), size, "replace");
  PyObject* const result =
      PyObject_CallFunction(receiver, "sNdk", log_level_name(entry.level), text, seconds.count(),
                            static_cast<unsigned long>(entry.thread));  // NOLINT: the type of "k"
  if (result == nullptr) {
    if (!is_courier && PyErr_ExceptionMatches(PyExc_Exception) == 0) return false;
    PyErr_WriteUnraisable(receiver);
  }
  Py_XDECREF(result);
  return true;
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

/// Hands over the entries that are there, in order. With the GIL. At the end the courier leaves it
/// to the main thread. False where hand_over() is; the other entries wait then.
bool deliver(Mailbox& box, bool is_courier) {
  bool goes_on = true;
  for (std::size_t left = take_turn(box); goes_on && left > 0; --left) {
    try {
      const std::optional<LogEntry> entry = take_entry(box, is_courier);
      if (!entry) break;
      goes_on = hand_over(*entry, is_courier);
    } catch (const std::exception&) {
      // Out of memory: a failing log must not change the program's work.
    }
  }
  const std::lock_guard lock(box.mutex);
  --box.deliveries;
  box.changed.notify_all();
  return goes_on;
}

int deliver_in_main(void* unused) noexcept;

/// Asks the main thread to deliver. Without our lock: Python may give its own up meanwhile.
void tell_main(Mailbox& box) {
  {
    const std::lock_guard lock(box.mutex);
    if (std::exchange(box.is_main_told, true)) return;
  }
  if (Py_AddPendingCall(&deliver_in_main, nullptr) == 0) return;
  const std::lock_guard lock(box.mutex);
  box.is_main_told = false;  // the courier has it
}

int deliver_in_main(void* /*unused*/) noexcept {
  try {
    Mailbox& box = mailbox();
    {
      const std::lock_guard lock(box.mutex);
      box.is_main_told = false;
    }
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);  // of the interrupted code
    if (deliver(box, false)) {
      PyErr_Restore(type, value, trace);
      return 0;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    tell_main(box);  // of what waits still
    return -1;
  } catch (...) {
    return 0;  // no lock to be had: a failing log must not change the program's work
  }
}

/// Whether the first entry waits for the courier, or has waited for the main thread long enough.
bool is_due(const Mailbox& box) {
  if (box.waiting.empty()) return false;
  const LogEntry& first = box.waiting.front();
  return !first.is_mains || Clock::now() - first.posted >= kMainsTurn;
}

void run_courier(Mailbox& box) {
  std::unique_lock lock(box.mutex);
  Clock::time_point last = Clock::now();
  while (!box.is_closed && (!box.waiting.empty() || Clock::now() - last < kCouriersRest)) {
    const bool rests = box.waiting.empty();
    box.changed.wait_for(lock, rests ? kCouriersRest : kMainsTurn, [&] {
      return box.is_closed || is_due(box) || (rests && !box.waiting.empty());
    });
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
  const bool is_mains = is_main_thread();
  {
    const std::lock_guard lock(box.mutex);
    if (box.is_closed || box.waiting.size() >= kMostWaiting) return write_log_line(level, text);
    box.waiting.push_back({level, std::string(text), std::chrono::system_clock::now(), Clock::now(),
                           ::pthread_self(), is_mains});
    if (!box.has_courier) start_courier(box);
    box.changed.notify_all();
  }
  if (is_mains) tell_main(box);
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
  if (!deliver(box, false)) throw py::error_already_set();
}

LogLevel parse_level(const std::string& name) {
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
  m.def("_set_log_level", [](const std::string& name) { set_log_level(parse_level(name)); });
  m.def("_log_level", [] { return log_level_name(log_level()); });
  m.def("_write_log_line", [](const std::string& level, const std::string& text) {
    write_log_line(parse_level(level), text);
  });
}

}  // namespace kernwright::python
