// An upstream for pools without memory. It records its calls.
#pragma once

#include "base/errors.h"
#include "core/device.h"
#include "memory/memory_resource.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace kernwright::testing {

class LoggedResource final : public MemoryResource {
 public:
  explicit LoggedResource(Device& device) : device_(device) {}
  CUdeviceptr allocate(std::size_t bytes, const Stream&) override {
    const std::lock_guard lock(mutex_);
    if (reserved + bytes > capacity) {
      throw OutOfMemory("the test's upstream is full", bytes, reserved, reserved, 0);
    }
    const CUdeviceptr address = next_;
    next_ += ((bytes >> 20) + 1) << 21;  // never beside another block
    live_[address] = bytes;
    reserved += bytes;
    peak = std::max(peak, reserved);
    ++allocs;
    return address;
  }
  void release(CUdeviceptr address, std::size_t bytes, const Stream&) override {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(address);
    REQUIRE(found != live_.end());
    REQUIRE(found->second == bytes);
    live_.erase(found);
    reserved -= bytes;
    ++frees;
  }
  void deallocate(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept override {
    release(address, bytes, stream);
  }
  Device& device() const override { return device_; }
  std::string name() const override { return "LoggedResource"; }
  MemoryStats stats() const override { return {}; }
  std::vector<AllocationRecord> records() const override { return {}; }
  void set_limit(std::size_t) override {}
  bool is_synchronous() const noexcept override { return true; }
  /// Whether all of [address, address + bytes) is allocated memory.
  bool covers(CUdeviceptr address, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto next = live_.upper_bound(address);
    if (next == live_.begin()) return false;
    --next;
    return address + bytes <= next->first + next->second;
  }

  std::size_t capacity = std::size_t{1} << 60;
  std::uint64_t reserved = 0, peak = 0, allocs = 0, frees = 0;

 private:
  Device& device_;
  std::mutex mutex_;
  CUdeviceptr next_ = std::uint64_t{1} << 44;
  std::map<CUdeviceptr, std::size_t> live_;
};

}  // namespace kernwright::testing
