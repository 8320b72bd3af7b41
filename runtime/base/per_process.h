// One object of a type for each process: a forked child gets a new one.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>

namespace kernwright {

/// The process's object, made from `arguments` when first asked for and never destroyed: it serves
/// while the process exits. A forked child makes an object of its own: it has none of its parent's
/// threads, and one of them may have held a mutex. No lock guards this: a child could inherit it
/// locked. Thread-safe; of several objects made at once one is kept.
template <typename T, typename... Arguments>
T& per_process(const Arguments&... arguments) {
  struct Owned {
    explicit Owned(pid_t owner, const Arguments&... given) : pid(owner), object(given...) {}
    const pid_t pid;
    T object;
  };
  static std::atomic<Owned*> current = nullptr;
  const pid_t pid = ::getpid();
  Owned* known = current.load();
  while (known == nullptr || known->pid != pid) {
    auto made = std::make_unique<Owned>(pid, arguments...);
    if (current.compare_exchange_strong(known, made.get())) known = made.release();
  }
  return known->object;
}

}  // namespace kernwright
