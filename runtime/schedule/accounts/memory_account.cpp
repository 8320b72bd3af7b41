// Holding bytes of a device, and the accounts of all devices.
#include "schedule/accounts/memory_account.h"

#include "core/device.h"
#include "memory/memory_resource.h"

#include <algorithm>
#include <map>

namespace kernwright::schedule {
namespace {

/// Leaked on purpose: schedulers may outlive every other static object.
struct Accounts {
  std::mutex mutex;
  std::map<const Device*, std::weak_ptr<MemoryAccount>> by_device;
};

Accounts& accounts() {
  static auto* const instance = new Accounts;
  return *instance;
}

std::uint64_t measured_free(Device& device) {
  std::uint64_t bytes = device.memory_info().free;
  if (const auto resource = known_default_resource(device)) bytes += resource->stats().cached;
  return bytes;
}

}  // namespace

std::uint64_t MemoryAccount::capacity() const noexcept {
  const std::lock_guard lock(mutex_);
  return capacity_;
}

std::uint64_t MemoryAccount::held() const noexcept {
  const std::lock_guard lock(mutex_);
  return held_;
}

std::uint64_t MemoryAccount::free() const noexcept {
  const std::lock_guard lock(mutex_);
  return capacity_ - std::min(held_, capacity_);
}

bool MemoryAccount::reserve(std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (bytes > capacity_ - std::min(held_, capacity_)) return false;
  held_ += bytes;
  return true;
}

void MemoryAccount::give_back(std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  held_ -= std::min(bytes, held_);
}

void MemoryAccount::measure(std::uint64_t capacity) noexcept {
  const std::lock_guard lock(mutex_);
  if (held_ == 0) capacity_ = capacity;
}

std::shared_ptr<void> MemoryAccount::set_apart(const std::shared_ptr<MemoryAccount>& account,
                                               std::uint64_t bytes) {
  std::uint64_t held = 0;
  {
    const std::lock_guard lock(account->mutex_);
    held = std::min(bytes, account->capacity_);
    account->held_ += held;
  }
  return {nullptr, [account, held](void*) { account->give_back(held); }};
}

std::shared_ptr<MemoryAccount> memory_account(Device& device) {
  const std::uint64_t free = measured_free(device);
  Accounts& all = accounts();
  const std::lock_guard lock(all.mutex);
  std::weak_ptr<MemoryAccount>& known = all.by_device[&device];
  std::shared_ptr<MemoryAccount> account = known.lock();
  if (account == nullptr) {
    known = account = std::make_shared<MemoryAccount>(free);
  } else {
    account->measure(free);
  }
  return account;
}

}  // namespace kernwright::schedule
