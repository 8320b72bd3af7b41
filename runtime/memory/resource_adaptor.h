// The common part of adaptors: a resource that passes everything on to another one.
#pragma once

#include "memory/memory_resource.h"

namespace kernwright {

/// Passes every call on; derived classes override some. As thread-safe as its upstream.
class ResourceAdaptor : public MemoryResource {
 public:
  /// Throws InvalidArgument for a null upstream.
  explicit ResourceAdaptor(std::shared_ptr<MemoryResource> upstream);

  CUdeviceptr allocate(std::size_t bytes, const Stream& stream) override;
  void release(CUdeviceptr address, std::size_t bytes, const Stream& stream) override;
  void deallocate(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept override;
  Device& device() const override { return upstream_->device(); }
  MemoryStats stats() const override { return upstream_->stats(); }
  std::vector<AllocationRecord> records() const override { return upstream_->records(); }
  std::vector<HistorySample> history() const override { return upstream_->history(); }
  std::size_t trim(std::size_t bytes_to_keep = 0) override {
    return upstream_->trim(bytes_to_keep);
  }
  void let_idle_streams_go() override { upstream_->let_idle_streams_go(); }
  void set_limit(std::size_t bytes) override { upstream_->set_limit(bytes); }
  void note_eviction() noexcept override { upstream_->note_eviction(); }
  bool belongs_to(Capture& capture, CUdeviceptr address) const override {
    return upstream_->belongs_to(capture, address);
  }
  bool is_synchronous() const noexcept override { return upstream_->is_synchronous(); }
  bool is_host_accessible() const noexcept override { return upstream_->is_host_accessible(); }

  const std::shared_ptr<MemoryResource>& upstream() const noexcept { return upstream_; }

 private:
  std::shared_ptr<MemoryResource> upstream_;
};

}  // namespace kernwright
