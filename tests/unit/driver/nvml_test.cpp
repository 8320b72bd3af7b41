// NVML as functions, any of them possibly missing.
#include "driver/nvml.h"

#include "base/errors.h"

#include <doctest/doctest.h>

using namespace kernwright;

namespace {

NvmlApi working() {
  NvmlApi api;
  api.nvmlInit_v2 = [] { return 0; };
  return api;
}

}  // namespace

TEST_CASE("nvml: what the library lacks is not told, and nothing is called through null") {
  const Nvml nvml(working());
  CHECK_THROWS_AS(nvml.device("0000:01:00.0"), DeviceNotFound);
  CHECK_FALSE(nvml.energy_joules(nullptr).has_value());
  CHECK_FALSE(nvml.power_watts(nullptr).has_value());
  CHECK_FALSE(nvml.clock_reasons(nullptr).has_value());
  CHECK_THROWS_AS(Nvml(NvmlApi{}), Error);
}

TEST_CASE("nvml: units and reasons") {
  NvmlApi api = working();
  api.nvmlDeviceGetTotalEnergyConsumption = [](nvmlDevice_t, unsigned long long* mj) {
    *mj = 12'345;
    return 0;
  };
  api.nvmlDeviceGetPowerUsage = [](nvmlDevice_t, unsigned* mw) {
    *mw = 345'600;
    return 0;
  };
  api.nvmlDeviceGetCurrentClocksEventReasons = [](nvmlDevice_t, unsigned long long* reasons) {
    *reasons = 0x4 | 0x40 | 0x1;
    return 0;
  };
  const Nvml nvml(api);
  CHECK(*nvml.energy_joules(nullptr) == doctest::Approx(12.345));
  CHECK(*nvml.power_watts(nullptr) == doctest::Approx(345.6));
  const ClockReasons reasons = *nvml.clock_reasons(nullptr);
  CHECK(reasons.power_cap);
  CHECK(reasons.thermal);
  CHECK_FALSE(reasons.hardware);
}

TEST_CASE("nvml: that of the system is there, or the reason why not") {
  std::string why;
  if (Nvml::system(&why) == nullptr) {
    CHECK_FALSE(why.empty());
  } else {
    CHECK(why.empty());
  }
  CHECK(Nvml::system() == Nvml::system());
}
