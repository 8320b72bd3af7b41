// Device malloc() and free() on top of the simulated device's memory.
#include "sim/exec/heap.h"

namespace kernwright::sim {

Heap::~Heap() {
  for (const auto& [address, bytes] : blocks_) memory_.free(address);
}

std::uint64_t Heap::allocate(std::uint64_t bytes, bool apart) {
  const std::lock_guard lock(mutex_);
  if (bytes == 0 || bytes > limit_ || used_ > limit_ - bytes) return 0;
  std::optional<std::uint64_t> address;
  if (!apart) address = memory_.allocate_packed(bytes);
  if (!address) address = memory_.allocate(bytes, AllocationKind::heap, "device malloc");
  if (!address) return 0;
  blocks_.emplace(*address, bytes);
  used_ += bytes;
  return *address;
}

bool Heap::free(std::uint64_t address) {
  if (address == 0) return true;
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return false;
  used_ -= found->second;
  blocks_.erase(found);
  return memory_.free(address);
}

void Heap::set_limit(std::uint64_t limit_bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = limit_bytes;
}

std::uint64_t Heap::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

std::uint64_t Heap::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace kernwright::sim
