// Blocks with two owners, freed by the last one.
#include "memory/pool/graph_blocks.h"

#include "core/device.h"
#include "core/graph/capture.h"

#include <utility>

namespace kernwright {

struct GraphBlocks::Block {
  Block(Device& d, CUdeviceptr a) : device(d), address(a) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    ReleaseGuard guard(device);
    const RelaxedCapture relaxed(device);
    if (guard) guard.report(device.driver().cuMemFree(address), "cuMemFree");
  }

  Device& device;
  CUdeviceptr address;
};

void GraphBlocks::share(CUdeviceptr address, Capture& capture) {
  auto block = std::make_shared<Block>(device_, address);
  capture.keep_alive(block);
  const std::lock_guard lock(mutex_);
  blocks_[address] = std::move(block);
  count_.fetch_add(1, std::memory_order_relaxed);
}

bool GraphBlocks::release(CUdeviceptr address) noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) return false;
  std::shared_ptr<Block> gone;  // freed after the lock
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return false;
  gone = std::move(found->second);
  blocks_.erase(found);
  count_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

}  // namespace kernwright
