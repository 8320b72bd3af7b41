// The process-wide runtime: its drivers, their devices, and the current device.
#pragma once

#include "driver/driver_api.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

class Device;

/// Created on first use, never destroyed (no driver call may run during process exit). The first
/// call in need of a device opens the drivers, so creation costs nothing. All members are
/// thread-safe; the current device is a property of the calling thread.
class Runtime {
 public:
  static Runtime& get();

  /// Makes the simulated device known. Called once by a program linked with it (bindings, tests);
  /// `core` itself never includes it. `factory` must return the same table each time. Throws Error
  /// once the devices were listed, unless it is the factory that is registered already.
  static void register_sim(const DriverApi& (*factory)());
  /// Replaces the table of the real driver, for tests and decorators (RecordingDriver). The table
  /// must live as long as the process. Throws Error once the devices were listed.
  static void override_cuda(const DriverApi* api);

  /// All devices of the selected kind in order of their index: the GPUs where there are any and
  /// KERNWRIGHT_DEVICE is not "sim", else the simulated devices. Empty when KERNWRIGHT_DEVICE is
  /// "cuda" and there is none.
  const std::vector<Device*>& devices();
  /// Index into devices(). Throws DeviceNotFound naming the count.
  Device& device(int index);
  /// "cuda", "cuda:1", "sim", "sim:0", a UUID or a PCI bus id. "cuda" without a GPU throws
  /// DriverNotFound or DeviceNotFound with the remedy; an unknown name lists the known ones.
  Device& device(std::string_view name);

  /// The device of this thread: the one set, else the one KERNWRIGHT_DEVICE names
  /// (auto | cuda | cuda:N | sim | sim:N), else the first of devices().
  Device& current_device();
  /// The same when finding it needs no call of a driver, else null. Never waits.
  Device* known_device() noexcept;
  void set_current_device(Device& device);
  /// The device set for this thread, null when none was: to restore it later.
  Device* thread_device() const noexcept;
  void clear_thread_device() noexcept;

  /// Why there is no real driver or no GPU ("CUDA driver not detected: ..."), empty when there is
  /// one.
  std::string cuda_unavailable_reason();

 private:
  Runtime();
  struct State;
  State* state_;
};

}  // namespace kernwright
