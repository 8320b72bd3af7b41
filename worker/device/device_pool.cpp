// The devices, and their users.
#include "worker/device/device_pool.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/format.h"

namespace kernwright {
namespace {

std::string variable() { return std::string(env_variable(Env::device).name) + "="; }

/// The value of KERNWRIGHT_DEVICE in a worker.
std::string wanted_device(const WorkerOptions& options) {
  for (const std::string& entry : options.environment) {
    if (entry.starts_with(variable())) return entry.substr(variable().size());
  }
  return env_text(Env::device);
}

RemoteDeviceOptions with_device(RemoteDeviceOptions options, int ordinal) {
  auto& environment = options.worker.environment;
  std::erase_if(environment, [](const std::string& e) { return e.starts_with(variable()); });
  environment.push_back(format("{}cuda:{}", variable(), ordinal));
  return options;
}

/// Whether the value is one of those that leave the choice among several devices.
bool names_a_kind(std::string_view wanted) {
  return wanted.empty() || wanted == "auto" || wanted == "cuda" || wanted == "sim";
}

}  // namespace

struct DevicePool::State {
  std::vector<RemoteDevice> devices;
  std::mutex mutex;
  std::condition_variable given_back;
  std::vector<bool> is_free;
};

DevicePool::DevicePool(unsigned count, RemoteDeviceOptions options, const WaitLimits& limits)
    : state_(std::make_unique<State>()) {
  RemoteDevice first(options);
  const DeviceFacts facts = first.facts(limits);
  const bool is_chosen = !names_a_kind(wanted_device(options.worker));
  const auto most = static_cast<unsigned>(is_chosen ? 1 : facts.device_count);
  if (!facts.is_simulated && count > most) {
    throw InvalidArgument(format(
        "{} workers for {} GPUs: two workers on one GPU would disturb each other", count, most));
  }
  if (count == 0) count = facts.is_simulated ? 1 : most;
  const bool is_spread = !facts.is_simulated && !is_chosen;
  state_->devices.push_back(std::move(first));  // holds the first GPU, if it is spread
  for (unsigned i = 1; i < count; ++i) {
    state_->devices.emplace_back(is_spread ? with_device(options, static_cast<int>(i)) : options);
  }
  state_->is_free.assign(count, true);
}

DevicePool::~DevicePool() = default;

DevicePool::Lease::~Lease() {
  if (pool_ == nullptr) return;
  const std::lock_guard lock(pool_->state_->mutex);
  pool_->state_->is_free[index_] = true;
  pool_->state_->given_back.notify_one();
}

RemoteDevice& DevicePool::Lease::operator*() const { return pool_->state_->devices[index_]; }

DevicePool::Lease DevicePool::lease(const WaitLimits& limits) {
  std::unique_lock lock(state_->mutex);
  while (true) {
    const auto free = std::find(state_->is_free.begin(), state_->is_free.end(), true);
    if (free != state_->is_free.end()) {
      *free = false;
      return {*this, static_cast<unsigned>(free - state_->is_free.begin())};
    }
    if (state_->given_back.wait_for(lock, kWaitSlice) == std::cv_status::no_timeout) continue;
    lock.unlock();
    check_wait(limits, "waiting for a free device");
    lock.lock();
  }
}

unsigned DevicePool::size() const noexcept { return static_cast<unsigned>(state_->devices.size()); }

}  // namespace kernwright
