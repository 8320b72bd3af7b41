// The one runtime of the process, over the registry of devices.
#include "core/runtime.h"

#include "base/env.h"
#include "base/errors.h"
#include "core/device.h"
#include "core/device_registry.h"
#include "core/lifecycle.h"
#include "driver/driver_loader.h"

#include <atomic>
#include <mutex>

namespace kernwright {
namespace {

/// Registered before the devices are listed. Leaked on purpose, as the runtime itself.
struct Sources {
  std::mutex mutex;
  DeviceRegistry::SimFactory sim = nullptr;
  const DriverApi* cuda = nullptr;
  bool listed = false;
};

Sources& sources() {
  static auto* const instance = new Sources;
  return *instance;
}

thread_local Device* thread_current = nullptr;

}  // namespace

struct Runtime::State {
  std::mutex mutex;
  std::atomic<DeviceRegistry*> registry{nullptr};
  std::atomic<Device*> preferred{nullptr};

  DeviceRegistry& devices();
};

DeviceRegistry& Runtime::State::devices() {
  require_driver_allowed();
  if (DeviceRegistry* ready = registry.load(std::memory_order_acquire)) return *ready;
  const std::lock_guard lock(mutex);
  if (DeviceRegistry* ready = registry.load(std::memory_order_relaxed)) return *ready;
  report_unknown_variables();
  DeviceRegistry::Options options;
  options.wanted = env_text(Env::device);
  {
    Sources& given = sources();
    const std::lock_guard sources_lock(given.mutex);
    given.listed = true;
    options.sim = given.sim;
    options.cuda = given.cuda;
  }
  if (options.cuda != nullptr) {
    const CUresult result = options.cuda->cuInit(0);
    if (result != CUDA_SUCCESS) {
      options.cuda_reason =
          result == CUDA_ERROR_NO_DEVICE
              ? "no GPU devices found: cuInit reports none"
              : "CUDA driver not detected: cuInit: " + describe_result(*options.cuda, result);
      options.cuda = nullptr;
    }
  } else {
    options.cuda = load_cuda_driver(&options.cuda_reason);
  }
  watch_process();
  auto* made = new DeviceRegistry(std::move(options));
  registry.store(made, std::memory_order_release);
  return *made;
}

Runtime::Runtime() : state_(new State) {}

Runtime& Runtime::get() {
  static auto* const instance = new Runtime;
  return *instance;
}

void Runtime::register_sim(const DriverApi& (*factory)()) {
  Sources& given = sources();
  const std::lock_guard lock(given.mutex);
  if (given.sim == factory) return;
  if (given.listed) throw Error("the simulated device must be registered before devices are used");
  given.sim = factory;
}

void Runtime::override_cuda(const DriverApi* api) {
  Sources& given = sources();
  const std::lock_guard lock(given.mutex);
  if (given.listed) throw Error("the driver's table must be replaced before devices are used");
  given.cuda = api;
}

const std::vector<Device*>& Runtime::devices() { return state_->devices().devices(); }

Device& Runtime::device(int index) { return state_->devices().by_index(index); }

Device& Runtime::device(std::string_view name) { return state_->devices().by_name(name); }

Device* Runtime::known_device() noexcept {
  Device* const known = thread_current != nullptr
                            ? thread_current
                            : state_->preferred.load(std::memory_order_acquire);
  return known != nullptr ? &known->newest() : nullptr;
}

Device& Runtime::current_device() {
  if (Device* const known = known_device()) return *known;
  Device& chosen = state_->devices().preferred();
  state_->preferred.store(&chosen, std::memory_order_release);
  return chosen;
}

void Runtime::set_current_device(Device& device) { thread_current = &device; }

Device* Runtime::thread_device() const noexcept { return thread_current; }

void Runtime::clear_thread_device() noexcept { thread_current = nullptr; }

std::string Runtime::cuda_unavailable_reason() {
  return state_->devices().cuda_unavailable_reason();
}

}  // namespace kernwright
