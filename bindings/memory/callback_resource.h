// Memory of another library: a resource with Python functions for allocations and frees.
#pragma once

#include "memory/memory_resource.h"

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// Calls allocate(bytes, stream) -> address and deallocate(address, bytes, stream), where `stream`
/// is a kw.Stream. A MemoryError of the first is an OutOfMemory; another exception becomes an Error
/// with its text. Takes the GIL for each call, so the caller may hold no lock that threads with the
/// GIL wait for.
class CallbackResource final : public MemoryResource {
 public:
  /// Needs the GIL, as the end does not.
  CallbackResource(Device& device, py::function allocate, py::function deallocate);
  ~CallbackResource() override;
  CallbackResource(const CallbackResource&) = delete;
  CallbackResource& operator=(const CallbackResource&) = delete;

  CUdeviceptr allocate(std::size_t bytes, const Stream& stream) override;
  void release(CUdeviceptr address, std::size_t bytes, const Stream& stream) override;
  void deallocate(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept override;
  Device& device() const override { return device_; }
  std::string name() const override { return "CallbackResource"; }
  MemoryStats stats() const override { return ledger_.stats(); }
  std::vector<AllocationRecord> records() const override { return ledger_.records(); }
  std::vector<HistorySample> history() const override { return ledger_.history(); }
  void set_limit(std::size_t bytes) override;
  void note_eviction() noexcept override { ledger_.note_eviction(); }

 private:
  CUdeviceptr ask(std::size_t bytes, const Stream& stream);

  Device& device_;
  AllocationLedger ledger_;
  py::function allocate_;
  py::function deallocate_;
};

}  // namespace kernwright::python
