// NVML: what the driver's management library tells of a GPU, opened when first needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kernwright {

using nvmlReturn_t = int;
using nvmlDevice_t = struct nvmlDevice_st*;

/// The answer of an empty slot, and of NVML where a GPU cannot tell.
inline constexpr nvmlReturn_t kNvmlNotSupported = 3;

/// Becomes, for any slot, a function that returns kNvmlNotSupported and touches nothing.
class NvmlStub {
  template <typename... Parameters>
  using Function = nvmlReturn_t (*)(Parameters...);

 public:
  template <typename... Parameters>
  constexpr operator Function<Parameters...>() const noexcept {
    return [](Parameters...) -> nvmlReturn_t { return kNvmlNotSupported; };
  }
};

/// The functions of NVML that the library calls, under their exported names. A plain value; no slot
/// is ever null.
struct NvmlApi {
  const char* (*nvmlErrorString)(nvmlReturn_t result) = [](nvmlReturn_t) { return "unknown"; };
  nvmlReturn_t (*nvmlInit_v2)() = NvmlStub{};
  nvmlReturn_t (*nvmlDeviceGetHandleByPciBusId_v2)(const char* bus_id,
                                                   nvmlDevice_t* device) = NvmlStub{};
  nvmlReturn_t (*nvmlDeviceGetTotalEnergyConsumption)(nvmlDevice_t device,
                                                      unsigned long long* millijoules) = NvmlStub{};
  nvmlReturn_t (*nvmlDeviceGetPowerUsage)(nvmlDevice_t device,
                                          unsigned int* milliwatts) = NvmlStub{};
  /// nvmlDeviceGetCurrentClocksThrottleReasons in drivers before 535.
  nvmlReturn_t (*nvmlDeviceGetCurrentClocksEventReasons)(nvmlDevice_t device,
                                                         unsigned long long* reasons) = NvmlStub{};
};

/// Why the clocks of a GPU are lower than they might be.
struct ClockReasons {
  bool power_cap = false;  ///< the power limit; usual for heavy kernels
  bool thermal = false;    ///< too hot
  bool hardware = false;   ///< hardware slowdown or the power brake
};

/// Thread-safe, as NVML is. NVML stays loaded and initialised.
class Nvml {
 public:
  /// Initialises; throws Error with NVML's own text.
  explicit Nvml(const NvmlApi& api);
  /// NVML of the system. Null without one: `why`, if given, receives the reason. Looks once.
  static const Nvml* system(std::string* why = nullptr);

  /// The GPU at "0000:65:00.0". Throws DeviceNotFound.
  nvmlDevice_t device(const std::string& pci_bus_id) const;

  // Nothing where the GPU does not tell.
  std::optional<double> energy_joules(nvmlDevice_t device) const;  ///< since the driver was loaded
  std::optional<double> power_watts(nvmlDevice_t device) const;
  std::optional<ClockReasons> clock_reasons(nvmlDevice_t device) const;

 private:
  NvmlApi api_;
};

}  // namespace kernwright
