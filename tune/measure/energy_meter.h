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
  /// `nvml` null: there is none, for the reason `why`. Throws Error with this reason;
  /// DeviceNotFound if NVML does not know the GPU; Error if the GPU reports neither energy nor
  /// power.
  EnergyMeter(const Nvml* nvml, const std::string& why, const std::string& pci_bus_id);

  /// Calls `run_some` again and again, for at least `least` and between two changes of the energy
  /// counter. `run_some` must keep the device busy for some milliseconds; it returns its number of
  /// runs. Without a counter, power is integrated. Throws Error if the counter does not change in
  /// 2 s.
  EnergyReading measure(const std::function<int()>& run_some, Seconds least) const;

 private:
  EnergyReading by_counter(const std::function<int()>& run_some, Seconds least) const;
  EnergyReading by_power(const std::function<int()>& run_some, Seconds least) const;

  const Nvml* nvml_;
  nvmlDevice_t gpu_;
};

}  // namespace kernwright
