// A resource with a limit on its bytes in use.
#pragma once

#include "memory/resource_adaptor.h"

#include <mutex>

namespace kernwright {

/// Refuses allocations beyond the limit, without asking upstream. Thread-safe.
class LimitingAdaptor final : public ResourceAdaptor {
 public:
  /// Throws InvalidArgument for a limit of 0 bytes.
  LimitingAdaptor(std::shared_ptr<MemoryResource> upstream, std::size_t limit);

  /// Throws OutOfMemory above the limit; the message names it.
  CUdeviceptr allocate(std::size_t bytes, const Stream& stream) override;
  void release(CUdeviceptr address, std::size_t bytes, const Stream& stream) override;
  void deallocate(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept override;
  /// Counts bytes that come from elsewhere, for good. Throws as allocate().
  void take(std::size_t bytes);
  std::string name() const override { return "LimitingAdaptor"; }
  /// Upstream's, with this adaptor's limit and refusals.
  MemoryStats stats() const override;
  /// Throws InvalidArgument below the bytes in use. 0 forbids all allocations.
  void set_limit(std::size_t bytes) override;

 private:
  void note_freed(std::size_t bytes) noexcept;

  mutable std::mutex mutex_;
  std::size_t limit_;
  std::size_t used_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace kernwright
