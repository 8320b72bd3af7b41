// A resource that records its allocations, with the line of the program for each.
#pragma once

#include "memory/resource_adaptor.h"

namespace kernwright {

/// Keeps a record of each allocation, charged to current_allocation_site(), and refuses to free
/// unrecorded memory. Memory left at its end is reported in the log. Thread-safe.
class TrackingAdaptor final : public ResourceAdaptor {
 public:
  using ResourceAdaptor::ResourceAdaptor;
  ~TrackingAdaptor() override;

  CUdeviceptr allocate(std::size_t bytes, const Stream& stream) override;
  void release(CUdeviceptr address, std::size_t bytes, const Stream& stream) override;
  void deallocate(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept override;
  std::string name() const override { return "TrackingAdaptor"; }
  std::vector<AllocationRecord> records() const override { return ledger_.records(); }
  /// "1.0 MiB in 2 allocations are in use: 1.0 MiB in 1 allocation from app.py:12, ..."; empty when
  /// there is nothing.
  std::string report(std::size_t limit = 20) const;

 private:
  AllocationLedger ledger_;
};

}  // namespace kernwright
