// One GPU, or the simulated one: properties, primary context, synchronisation.
#pragma once

#include "core/capability.h"
#include "core/launch/launch_history.h"
#include "driver/driver_api.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

namespace kernwright {

class DeviceRegistry;

struct MemoryInfo {
  std::uint64_t free = 0;   ///< bytes
  std::uint64_t total = 0;  ///< bytes
};

struct DeviceLoss;

/// Lives as long as the process; made by Runtime only. Thread-safe.
/// The primary context is retained on first need and never released.
class Device {
 public:
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  const DriverApi& driver() const noexcept { return api_; }
  bool is_simulated() const noexcept { return simulated_; }
  int ordinal() const noexcept { return ordinal_; }  ///< index in its own driver
  CUdevice handle() const noexcept { return device_; }
  /// Primary context, retained lazily. Does not make it current.
  CUcontext context();

  std::string identify() const;  ///< "cuda:0 (NVIDIA H200)" or "sim:0"
  std::string label() const;     ///< "cuda:0" or "sim:0"
  const std::string& name() const noexcept { return name_; }
  std::string uuid() const;        ///< "GPU-xxxxxxxx-..."
  std::string pci_bus_id() const;  ///< "0000:65:00.0"
  ComputeCapability compute_capability() const;
  Capabilities capabilities() const { return capabilities_of(compute_capability()); }
  /// Any CUdevice_attribute; throws DriverError for one the driver does not know. Cached.
  int attribute(CUdevice_attribute which) const;
  int driver_version() const;  ///< 13000 for CUDA 13.0
  MemoryInfo memory_info();

  /// Waits for all work of the device. Throws DeviceFault, DeviceLost or Timeout; CaptureError
  /// while a stream of the device is being captured.
  void synchronize(std::optional<std::chrono::nanoseconds> timeout = std::nullopt);

  /// True once a sticky error was seen or the device was reset: every later call on this object,
  /// and on all that was made on it, throws DeviceLost at once, without asking the driver.
  bool lost() const noexcept;

  /// Destroys the primary context with all that is in it, memory of other libraries in this process
  /// included, and makes a new one; usable after a sticky error, if the driver allows it. This
  /// object then stays lost. Its streams, buffers and kernels raise DeviceLost, and their
  /// destructors do not call the driver. The returned object is the device from now on, also for
  /// Runtime. Page-locked memory made on the device is unmapped: it must not be touched any more.
  /// If the device was reset already, returns its new object. Throws DeviceLost when the driver
  /// refuses: then only a new process helps. Waits for no work; no other thread may be inside a
  /// call on the device.
  Device& reset();
  /// The device that reset() made of this one, else this object itself. One load.
  Device& newest() noexcept;
  /// How often the device was reset before this object stood for it.
  int generation() const noexcept { return generation_; }

  /// Throws the error for `result` of the driver call named `call` (nothing for CUDA_SUCCESS):
  /// DeviceFault when the simulated device left a report, DeviceLost for sticky codes (and latches
  /// it), OutOfMemory, else DriverError. `object` identifies the subject of the call.
  void check(CUresult result, const char* call, const std::string& object = {}) {
    if (result != CUDA_SUCCESS) [[unlikely]] {
      fail(result, call, object);
    }
  }
  /// The throwing half of check(), for callers that make `object` only on failure. `origin` is the
  /// place of the loaded code's text.
  [[noreturn]] void fail(CUresult result, const char* call, const std::string& object = {},
                         const SourceOrigin& origin = {});

  /// Keeps an error of a destructor's wait, because destructors do not throw. The next call that
  /// waits for the device or a stream throws it. Of several the first counts.
  void keep_fault(std::exception_ptr fault) noexcept;
  /// For those calls: throws what was kept. Costs one load.
  void raise_kept_fault() {
    if (keeps_fault_.load(std::memory_order_relaxed)) [[unlikely]]
      throw_kept_fault();
  }

  /// Throws Error in a forked child or during exit, DeviceLost once the device is lost.
  void require_usable() const;
  /// Latches DeviceLost when `result` is sticky and the device is real; true when it was.
  bool latch_if_sticky(CUresult result, const char* call) noexcept;

  /// Remembers a launch for the messages of later errors. Lock-free, nothing is allocated.
  void note_launch(const KernelTag& kernel, const LaunchSite& site) noexcept {
    history_.note(kernel, site);
  }
  const LaunchHistory& launches() const noexcept { return history_; }

 private:
  friend class DeviceRegistry;
  Device(DeviceRegistry& registry, const DriverApi& api, bool simulated, int ordinal,
         CUdevice device, int generation = 0);
  [[noreturn]] void throw_fault(Fault report);
  [[noreturn]] void throw_lost() const;
  void throw_kept_fault();
  CUresult synchronize_within(std::chrono::nanoseconds timeout);
  void reset_context();
  void require_new_context(const DeviceLoss* before);

  struct State;
  DeviceRegistry& registry_;
  const DriverApi& api_;
  bool simulated_;
  int ordinal_;
  CUdevice device_;
  int generation_;
  std::string name_;
  std::unique_ptr<State> state_;
  std::atomic<bool> keeps_fault_{false};
  LaunchHistory history_;
};

/// True for the results after which a CUDA context can only be abandoned.
bool is_sticky(CUresult result) noexcept;

/// "CUDA_ERROR_INVALID_VALUE (1): invalid argument", with the driver's own text.
std::string describe_result(const DriverApi& api, CUresult result);

/// Makes the device's context current in this thread and restores the caller's on destruction.
/// Costs one driver query when it is current already. Throws in a forked child ("... was
/// initialised before fork()") and on a lost device. The destructor never throws.
class ContextGuard {
 public:
  /// `context`: another one of the device, that of a partition; null is the device's own.
  explicit ContextGuard(Device& device, CUcontext context = nullptr);
  ~ContextGuard();
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  Device& device_;
  CUcontext previous_ = nullptr;
  bool changed_ = false;
};

/// ContextGuard for destructors. Converts to false where the driver must be left alone (forked
/// child, process exit, lost device): the handle is then leaked on purpose. Never throws.
class ReleaseGuard {
 public:
  explicit ReleaseGuard(Device& device) noexcept;
  ~ReleaseGuard();
  ReleaseGuard(const ReleaseGuard&) = delete;
  ReleaseGuard& operator=(const ReleaseGuard&) = delete;

  explicit operator bool() const noexcept { return usable_; }
  /// Logs what the driver refused. CUDA_ERROR_DEINITIALIZED counts as success.
  void report(CUresult result, const char* call) noexcept;

 private:
  Device& device_;
  CUcontext previous_ = nullptr;
  bool changed_ = false;
  bool usable_ = false;
};

}  // namespace kernwright
