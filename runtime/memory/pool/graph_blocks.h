// Memory that was allocated while its stream was captured: a graph and a buffer own it together.
#pragma once

#include "driver/driver_api.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace kernwright {

class Capture;
class Device;

/// Blocks of cuMemAlloc whose addresses a graph's nodes contain: freed when their owner and the
/// graph have both let go of them. Thread-safe.
class GraphBlocks {
 public:
  explicit GraphBlocks(Device& device) : device_(device) {}

  /// Makes `capture`'s graph an owner of the block at `address`.
  void share(CUdeviceptr address, Capture& capture);
  /// The other owner lets go; false when the address is none of these.
  bool release(CUdeviceptr address) noexcept;

 private:
  struct Block;
  Device& device_;
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::map<CUdeviceptr, std::shared_ptr<Block>> blocks_;
};

}  // namespace kernwright
