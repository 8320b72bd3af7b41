// The resource of new arrays, for each device.
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "memory/memory_resource.h"
#include "memory/pool/pool_resource.h"
#include "memory/resource_scope.h"

#include <map>
#include <mutex>
#include <utility>

namespace kernwright {
namespace {

/// Resources by device. Leaked on purpose: arrays may outlive every other static object.
struct DefaultResources {
  struct Entry {
    std::shared_ptr<MemoryResource> first;    ///< made by the library, kept for good
    std::shared_ptr<MemoryResource> current;  ///< of new arrays
  };
  std::mutex mutex;
  std::map<const Device*, Entry> by_device;
};

DefaultResources& defaults() {
  static auto* const instance = new DefaultResources;
  return *instance;
}

/// NOTE: the simulated device checks every access against its allocation, and finds the
/// use of freed memory. Blocks of a pool would hide both, so arrays are allocated one by one there.
std::shared_ptr<MemoryResource> make_first(Device& device) {
  if (device.is_simulated()) return std::make_shared<AsyncResource>(device);
  return std::make_shared<PoolResource>(std::make_shared<DeviceResource>(device));
}

thread_local const ResourceScope* innermost = nullptr;

/// Of the scopes of this thread; null where none is of the device.
std::shared_ptr<MemoryResource> scoped_resource(const Device& device) {
  for (const ResourceScope* scope = innermost; scope != nullptr; scope = scope->outer()) {
    if (scope->resource() != nullptr && &scope->resource()->device() == &device) {
      return scope->resource();
    }
  }
  return nullptr;
}

}  // namespace

ResourceScope::ResourceScope(std::shared_ptr<MemoryResource> resource) noexcept
    : resource_(std::move(resource)), outer_(innermost) {
  innermost = this;
}

ResourceScope::~ResourceScope() { innermost = outer_; }

std::shared_ptr<MemoryResource> known_default_resource(const Device& device) {
  DefaultResources& all = defaults();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_device.find(&device);
  return found != all.by_device.end() ? found->second.current : nullptr;
}

std::shared_ptr<MemoryResource> default_resource(Device& device) {
  if (innermost != nullptr) [[unlikely]] {
    if (auto scoped = scoped_resource(device)) return scoped;
  }
  if (auto known = known_default_resource(device)) return known;
  DefaultResources& all = defaults();
  // Made without the lock: the driver may take its time, and other devices need not wait.
  const auto made = make_first(device);
  const std::lock_guard lock(all.mutex);
  return all.by_device.emplace(&device, DefaultResources::Entry{made, made}).first->second.current;
}

std::shared_ptr<MemoryResource> set_default_resource(Device& device,
                                                     std::shared_ptr<MemoryResource> resource) {
  if (resource != nullptr && &resource->device() != &device) {
    throw InvalidArgument(format("a resource of {} cannot serve {}", resource->device().identify(),
                                 device.identify()));
  }
  default_resource(device);
  DefaultResources& all = defaults();
  const std::lock_guard lock(all.mutex);
  DefaultResources::Entry& entry = all.by_device.at(&device);
  return std::exchange(entry.current, resource != nullptr ? std::move(resource) : entry.first);
}

}  // namespace kernwright
