// Opening NVML and asking it.
#include "driver/nvml.h"

#include "base/errors.h"
#include "base/format.h"
#include "driver/shared_library.h"

namespace kernwright {
namespace {

constexpr nvmlReturn_t kSuccess = 0;

// nvmlClocksEventReason...
constexpr unsigned long long kSwPowerCap = 0x4;
constexpr unsigned long long kHwSlowdown = 0x8;
constexpr unsigned long long kSwThermal = 0x20;
constexpr unsigned long long kHwThermal = 0x40;
constexpr unsigned long long kHwPowerBrake = 0x80;

template <typename Slot>
void find(const SharedLibrary& library, Slot& slot, const char* name, const char* older = nullptr) {
  void* address = library.symbol(name);
  if (address == nullptr && older != nullptr) address = library.symbol(older);
  if (address != nullptr) set_function(slot, address);
}

NvmlApi load_functions(const SharedLibrary& library) {
  NvmlApi api;
  find(library, api.nvmlErrorString, "nvmlErrorString");
  find(library, api.nvmlInit_v2, "nvmlInit_v2");
  find(library, api.nvmlDeviceGetHandleByPciBusId_v2, "nvmlDeviceGetHandleByPciBusId_v2");
  find(library, api.nvmlDeviceGetTotalEnergyConsumption, "nvmlDeviceGetTotalEnergyConsumption");
  find(library, api.nvmlDeviceGetPowerUsage, "nvmlDeviceGetPowerUsage");
  find(library, api.nvmlDeviceGetCurrentClocksEventReasons,
       "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons");
  return api;
}

struct SystemNvml {
  std::optional<Nvml> nvml;
  std::string why;
};

SystemNvml open_system() {
  SystemNvml system;
  std::string error;
  SharedLibrary library = SharedLibrary::open("libnvidia-ml.so.1", error);
  if (!library) {
    system.why = format("NVML cannot be opened: {}", error);
    return system;
  }
  library.keep_open();
  try {
    system.nvml.emplace(load_functions(library));
  } catch (const Error& failure) {
    system.why = failure.what();
  }
  return system;
}

}  // namespace

Nvml::Nvml(const NvmlApi& api) : api_(api) {
  const nvmlReturn_t result = api_.nvmlInit_v2();
  if (result != kSuccess) {
    throw Error(format("nvmlInit_v2 failed with {} ({})", result, api_.nvmlErrorString(result)));
  }
}

const Nvml* Nvml::system(std::string* why) {
  static const SystemNvml& found = *new SystemNvml(open_system());
  if (why != nullptr) *why = found.why;
  return found.nvml ? &*found.nvml : nullptr;
}

nvmlDevice_t Nvml::device(const std::string& pci_bus_id) const {
  nvmlDevice_t device = nullptr;
  const nvmlReturn_t result = api_.nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id.c_str(), &device);
  if (result != kSuccess) {
    throw DeviceNotFound(format("NVML does not know the GPU at {}: {} ({})", pci_bus_id, result,
                                api_.nvmlErrorString(result)));
  }
  return device;
}

std::optional<double> Nvml::energy_joules(nvmlDevice_t device) const {
  unsigned long long millijoules = 0;
  if (api_.nvmlDeviceGetTotalEnergyConsumption(device, &millijoules) != kSuccess) return {};
  return static_cast<double>(millijoules) / 1000;
}

std::optional<double> Nvml::power_watts(nvmlDevice_t device) const {
  unsigned int milliwatts = 0;
  if (api_.nvmlDeviceGetPowerUsage(device, &milliwatts) != kSuccess) return {};
  return milliwatts / 1000.0;
}

std::optional<ClockReasons> Nvml::clock_reasons(nvmlDevice_t device) const {
  unsigned long long reasons = 0;
  if (api_.nvmlDeviceGetCurrentClocksEventReasons(device, &reasons) != kSuccess) return {};
  return ClockReasons{.power_cap = (reasons & kSwPowerCap) != 0,
                      .thermal = (reasons & (kSwThermal | kHwThermal)) != 0,
                      .hardware = (reasons & (kHwSlowdown | kHwPowerBrake)) != 0};
}

}  // namespace kernwright
