// Allocations of a task.
#include "schedule/task_memory.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"

#include <utility>

namespace kernwright::schedule {

TaskMemory::TaskMemory(std::shared_ptr<MemoryResource> upstream, std::uint64_t limit,
                       std::string user)
    : ResourceAdaptor(std::make_shared<LimitingAdaptor>(
          std::make_shared<TrackingAdaptor>(std::move(upstream)), limit)),
      user_(std::move(user)),
      limit_(static_cast<LimitingAdaptor&>(*this->upstream())) {}

template <typename Take>
auto TaskMemory::for_user(const Take& take, const std::string& what) const {
  try {
    return take();
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(format("{}{}: {}", user_, what, error.what()), error.requested, error.used,
                      error.reserved, error.free);
  }
}

void TaskMemory::note_use(std::size_t bytes) noexcept {
  const std::uint64_t used = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::uint64_t peak = this->peak();
  while (used > peak && !peak_.compare_exchange_weak(peak, used, std::memory_order_relaxed)) {}
}

CUdeviceptr TaskMemory::allocate(std::size_t bytes, const Stream& stream) {
  const CUdeviceptr address = for_user([&] { return ResourceAdaptor::allocate(bytes, stream); });
  note_use(bytes);
  return address;
}

void TaskMemory::note_kernel(const Kernel& kernel) {
  const Module& module = kernel.module();
  const std::lock_guard lock(mutex_);
  if (!modules_.contains(module.handle())) {
    for_user([&] { limit_.take(module.bytes()); },
             format(", for the code of {}", kernel.signature().name));
    note_use(module.bytes());
    modules_.insert(module.handle());
  }
  // The simulated device would compile for the number, and has no such memory.
  if (module.makes_cubin() || kernel.attributes().local_bytes == 0) return;
  Device& device = kernel.device();
  const auto local =
      static_cast<std::uint64_t>(kernel.attributes().local_bytes) *
      static_cast<std::uint64_t>(
          device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)) *
      static_cast<std::uint64_t>(device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  if (local <= local_) return;
  for_user([&] { limit_.take(local - local_); },
           format(", for the local memory of {}", kernel.signature().name));
  note_use(local - local_);
  local_ = local;
}

void TaskMemory::release(CUdeviceptr address, std::size_t bytes, const Stream& stream) {
  ResourceAdaptor::release(address, bytes, stream);
  used_.fetch_sub(bytes, std::memory_order_relaxed);
}

void TaskMemory::deallocate(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept {
  ResourceAdaptor::deallocate(address, bytes, stream);
  used_.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace kernwright::schedule
