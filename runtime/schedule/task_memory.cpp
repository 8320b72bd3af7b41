// Allocations of a task.
#include "schedule/task_memory.h"

#include "base/errors.h"
#include "base/format.h"

#include <utility>

namespace kernwright::schedule {

TaskMemory::TaskMemory(std::shared_ptr<MemoryResource> upstream, std::uint64_t limit,
                       std::string user)
    : ResourceAdaptor(std::make_shared<LimitingAdaptor>(
          std::make_shared<TrackingAdaptor>(std::move(upstream)), limit)),
      user_(std::move(user)) {}

CUdeviceptr TaskMemory::allocate(std::size_t bytes, const Stream& stream) {
  CUdeviceptr address = 0;
  try {
    address = ResourceAdaptor::allocate(bytes, stream);
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(format("{}: {}", user_, error.what()), error.requested, error.used,
                      error.reserved, error.free);
  }
  const std::uint64_t used = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::uint64_t peak = this->peak();
  while (used > peak && !peak_.compare_exchange_weak(peak, used, std::memory_order_relaxed)) {}
  return address;
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
