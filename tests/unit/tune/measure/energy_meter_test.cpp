// Energy by an NVML of our own, whose counter ticks now and then.
#include "tune/measure/energy_meter.h"

#include "base/errors.h"
#include "unit/core/error_text.h"

#include <doctest/doctest.h>

#include <string>

using namespace kernwright;

namespace {

/// The GPU behind the functions: each run costs what it costs, the counter shows every tenth.
struct FakeGpu {
  long long runs = 0;
  double joules_per_run = 0.5;
  int runs_per_tick = 10;
  bool tells_energy = true, tells_power = true;
} gpu;

nvmlReturn_t find_device(const char* bus_id, nvmlDevice_t* device) {
  if (std::string(bus_id) != "0000:01:00.0") return 6;  // NVML_ERROR_NOT_FOUND
  *device = reinterpret_cast<nvmlDevice_t>(&gpu);
  return 0;
}

nvmlReturn_t total_energy(nvmlDevice_t device, unsigned long long* millijoules) {
  if (device != reinterpret_cast<nvmlDevice_t>(&gpu)) return 2;
  if (!gpu.tells_energy) return kNvmlNotSupported;
  const long long shown = gpu.runs / gpu.runs_per_tick * gpu.runs_per_tick;
  *millijoules =
      static_cast<unsigned long long>(1e6 + 1000 * gpu.joules_per_run * static_cast<double>(shown));
  return 0;
}

nvmlReturn_t power(nvmlDevice_t, unsigned* milliwatts) {
  if (!gpu.tells_power) return kNvmlNotSupported;
  *milliwatts = 300'000;
  return 0;
}

Nvml fake_nvml() {
  gpu = {};
  NvmlApi api;
  api.nvmlInit_v2 = [] { return 0; };
  api.nvmlDeviceGetHandleByPciBusId_v2 = find_device;
  api.nvmlDeviceGetTotalEnergyConsumption = total_energy;
  api.nvmlDeviceGetPowerUsage = power;
  return Nvml(api);
}

int run_three() {
  gpu.runs += 3;
  return 3;
}

}  // namespace

TEST_CASE("energy: from tick to tick of the counter") {
  const Nvml nvml = fake_nvml();
  const EnergyMeter meter(&nvml, {}, "0000:01:00.0");
  gpu.runs = 7;  // in the middle of a tick
  for (const Seconds least : {Seconds(0), Seconds(0.01)}) {
    const EnergyReading reading = meter.measure(run_three, least);
    CHECK(reading.joules_per_run == doctest::Approx(0.5).epsilon(0.2));
    CHECK(reading.watts > 0);
  }
  // Over many ticks the tick no longer matters.
  CHECK(meter.measure(run_three, Seconds(0.02)).joules_per_run ==
        doctest::Approx(0.5).epsilon(0.01));
}

TEST_CASE("energy: without a counter, power over time") {
  const Nvml nvml = fake_nvml();
  gpu.tells_energy = false;
  const EnergyMeter meter(&nvml, {}, "0000:01:00.0");
  const long long before = gpu.runs;
  const EnergyReading reading = meter.measure(run_three, Seconds(0.01));
  CHECK(reading.watts == doctest::Approx(300));
  const auto runs = static_cast<double>(gpu.runs - before);
  CHECK(reading.joules_per_run * runs >= 300 * 0.01 * 0.999);
}

TEST_CASE("energy: what is not there is said, with the reason") {
  const Nvml nvml = fake_nvml();
  const std::string message =
      testing::message_of<Error>([] { EnergyMeter(nullptr, "no such file", "0000:01:00.0"); });
  CHECK(testing::contains(message, "no such file"));
  CHECK_THROWS_AS(EnergyMeter(&nvml, {}, "0000:99:00.0"), DeviceNotFound);
  gpu.tells_energy = gpu.tells_power = false;
  CHECK_THROWS_AS(EnergyMeter(&nvml, {}, "0000:01:00.0"), Error);
}

TEST_CASE("energy: a counter that stands still ends in an error") {
  const Nvml nvml = fake_nvml();
  const EnergyMeter meter(&nvml, {}, "0000:01:00.0");
  CHECK_THROWS_AS(meter.measure([] { return 1; }, Seconds(0)), Error);
}

TEST_CASE("energy: work that throws passes through") {
  const Nvml nvml = fake_nvml();
  const EnergyMeter meter(&nvml, {}, "0000:01:00.0");
  CHECK_THROWS_AS(meter.measure([]() -> int { throw Timeout("late"); }, Seconds(0)), Timeout);
}
