// The process's one callback, and the end of a process at a named place.
#include "base/fault_point.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>

namespace kernwright {
namespace {

struct FaultState {
  std::mutex mutex;
  std::shared_ptr<const std::function<void(std::string_view)>> callback;
};

/// Leaked on purpose: threads may still run at exit.
FaultState& fault_state() {
  static auto* const instance = new FaultState;
  return *instance;
}

}  // namespace

void reach_fault_point(const char* name) {
  const char* const killed = std::getenv("KERNWRIGHT_FAULT_KILL");
  if (killed != nullptr && std::string_view(killed) == name) ::_exit(kFaultKillStatus);
  std::shared_ptr<const std::function<void(std::string_view)>> callback;
  {
    const std::lock_guard lock(fault_state().mutex);
    callback = fault_state().callback;
  }
  if (callback) (*callback)(name);
}

void set_fault_callback(std::function<void(std::string_view)> callback) {
  auto next =
      callback ? std::make_shared<const std::function<void(std::string_view)>>(std::move(callback))
               : nullptr;
  const std::lock_guard lock(fault_state().mutex);
  fault_state().callback = std::move(next);
}

}  // namespace kernwright
