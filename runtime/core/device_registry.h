// Lists the devices and chooses one: the rules of KERNWRIGHT_DEVICE, without any global.
#pragma once

#include "driver/driver_api.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

class Device;

/// A place on the PCI bus: "0000:65:00.0", with any number of digits of the domain or without it.
struct PciAddress {
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  bool operator==(const PciAddress&) const = default;
};

/// Nothing for what is no such address.
std::optional<PciAddress> parse_pci_address(std::string_view text);

/// The devices of one real driver and of one simulated driver, made lazily and kept. Thread-safe.
class DeviceRegistry {
 public:
  using SimFactory = const DriverApi& (*)();

  struct Options {
    const DriverApi* cuda = nullptr;  ///< initialised; null when there is none, then `cuda_reason`
    std::string cuda_reason;          ///< says why: "CUDA driver not detected: ..."
    SimFactory sim = nullptr;         ///< null when the program has no simulated device
    std::string wanted = "auto";      ///< the value of KERNWRIGHT_DEVICE
  };

  explicit DeviceRegistry(Options options);
  ~DeviceRegistry();
  DeviceRegistry(const DeviceRegistry&) = delete;
  DeviceRegistry& operator=(const DeviceRegistry&) = delete;

  /// The GPUs where there are any and `wanted` is not a simulated one, else the simulated devices.
  /// Empty when `wanted` is "cuda" and there is no GPU. The list stays as it is when a device is
  /// reset; the next call returns one with the new device.
  const std::vector<Device*>& devices();
  Device& by_index(int index);
  Device& by_name(std::string_view name);
  /// The device that `wanted` names. Falling back to the simulated device is logged once.
  Device& preferred();

  /// Why there is no GPU; empty when there is one.
  const std::string& cuda_unavailable_reason() const noexcept { return options_.cuda_reason; }

  /// Puts a new device into the place of `old`, whose context was reset. For Device::reset().
  Device& replace(Device& old);

 private:
  using List = std::vector<Device*>;
  void publish(std::atomic<const List*>& place, List list);
  std::vector<Device*> make_devices(const DriverApi& api, bool simulated);
  const std::vector<Device*>& simulated();
  const std::vector<Device*>& require_cuda();
  Device& at(const std::vector<Device*>& list, int index, std::string_view asked);
  Device* find_by_identity(std::string_view name);
  Device* find_by_uuid(std::string_view name);
  std::vector<Device*> everything();
  std::string list_devices();
  void log_fallback();

  Options options_;
  std::vector<std::unique_ptr<Device>> owned_;
  std::vector<std::unique_ptr<const List>> lists_;  ///< also those that were replaced
  std::atomic<const List*> cuda_{nullptr};
  std::atomic<const List*> sim_{nullptr};
  bool no_driver_ = false;
  std::mutex mutex_;  ///< guards the making of sim_, lists_ and owned_
  bool sim_made_ = false;
  std::atomic<bool> fallback_logged_{false};
};

}  // namespace kernwright
