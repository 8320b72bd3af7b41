// A resource that fails on purpose: for tests of programs built to survive it.
#pragma once

#include "memory/resource_adaptor.h"

#include <atomic>
#include <cstdint>

namespace kernwright {

/// Throws OutOfMemory for chosen allocations; the others pass. Thread-safe.
class FailingAdaptor final : public ResourceAdaptor {
 public:
  /// The allocations number `first` (counted from 1) up to `first` + `times` - 1 fail.
  FailingAdaptor(std::shared_ptr<MemoryResource> upstream, std::uint64_t first,
                 std::uint64_t times = 1);

  CUdeviceptr allocate(std::size_t bytes, const Stream& stream) override;
  std::string name() const override { return "FailingAdaptor"; }
  /// Allocations asked for so far, failed ones included.
  std::uint64_t calls() const noexcept { return calls_; }

 private:
  const std::uint64_t first_;
  const std::uint64_t times_;
  std::atomic<std::uint64_t> calls_ = 0;
};

}  // namespace kernwright
