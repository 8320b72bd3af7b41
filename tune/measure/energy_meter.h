// Joules of a GPU over a stretch of time.
#pragma once

#include "driver/nvml.h"
#include "tune/measure/measure_plan.h"

#include <functional>
#include <string>

namespace kernwright {

struct EnergyReading {
  double joules_per_run = 0;
  double watts = 0;
};

/// Reads NVML while work runs. Not thread-safe.
class EnergyMeter {
 public:
  /// `nvml` null: none is there, for the reason `why`. Throws Error that says so; DeviceNotFound
  /// when it does not know the GPU; Error when the GPU tells neither energy nor power.
  EnergyMeter(const Nvml* nvml, const std::string& why, const std::string& pci_bus_id);

  /// Calls `run_some` again and again, which keeps the device busy for some milliseconds and
  /// returns its runs, for at least `least` and between two changes of the energy counter. Where
  /// there is no counter, power is integrated. Throws Error when the counter does not move in
  /// 2 s.
  EnergyReading measure(const std::function<int()>& run_some, Seconds least) const;

 private:
  EnergyReading by_counter(const std::function<int()>& run_some, Seconds least) const;
  EnergyReading by_power(const std::function<int()>& run_some, Seconds least) const;

  const Nvml* nvml_;
  nvmlDevice_t gpu_;
};

}  // namespace kernwright
