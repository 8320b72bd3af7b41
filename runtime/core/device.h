// One GPU, or the simulated one: properties, primary context, synchronisation.
#pragma once

#include "driver/driver_api.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace kernwright {

struct MemoryInfo {
  std::uint64_t free = 0;   ///< bytes
  std::uint64_t total = 0;  ///< bytes
};

struct ComputeCapability {
  int major = 0, minor = 0;
  int number() const noexcept { return major * 10 + minor; }  ///< 80, 90, 100, ...
};

/// Lives as long as the process; made by Runtime only. Thread-safe.
/// The primary context is retained on first need and never released.
class Device {
 public:
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DriverApi& driver() const noexcept { return api_; }
  bool is_simulated() const noexcept { return simulated_; }
  int ordinal() const noexcept { return ordinal_; }        ///< index in its own driver
  CUdevice handle() const noexcept { return device_; }
  CUcontext context();                                     ///< primary context, retained lazily

  std::string identify() const;                            ///< "cuda:0 (NVIDIA H200)" or "sim:0"
  const std::string& name() const noexcept { return name_; }
  std::string uuid() const;                                ///< "GPU-xxxxxxxx-..."
  std::string pci_bus_id() const;
  ComputeCapability compute_capability() const;
  /// Any CUdevice_attribute; throws DriverError for one the driver does not know. Cached.
  int attribute(CUdevice_attribute which) const;
  int driver_version() const;                              ///< 13000 for CUDA 13.0
  MemoryInfo memory_info();

  /// Waits for all work of the device. Throws DeviceFault, DeviceLost or Timeout.
  void synchronize(std::optional<std::chrono::nanoseconds> timeout = std::nullopt);

  /// True once a sticky error was seen: every later call on the device throws DeviceLost at once.
  bool lost() const noexcept;

  /// Throws what `result` of the driver call named `call` means (nothing for CUDA_SUCCESS):
  /// DeviceFault when the simulated device left a report, DeviceLost for sticky codes (and latches
  /// it), OutOfMemory, else DriverError. `object` identifies what was worked on.
  void check(CUresult result, const char* call, const std::string& object = {});

 private:
  friend class Runtime;
  Device(const DriverApi& api, bool simulated, int ordinal, CUdevice device);
  struct State;
  const DriverApi& api_;
  bool simulated_;
  int ordinal_;
  CUdevice device_;
  std::string name_;
  State* state_;
};

/// Makes the device's context current in this thread and restores the caller's on destruction.
/// Throws in a forked child ("... was initialised before fork()"). The destructor never throws.
class ContextGuard {
 public:
  explicit ContextGuard(Device& device);
  ~ContextGuard();
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  Device& device_;
  CUcontext previous_ = nullptr;
  bool changed_ = false;
};

}  // namespace kernwright
