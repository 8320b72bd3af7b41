// Energy by NVML's counter between two of its ticks, or by its power.
#include "tune/measure/energy_meter.h"

#include "base/errors.h"
#include "base/format.h"
#include "tune/measure/stopwatch.h"

namespace kernwright {
namespace {

constexpr Seconds kPatience{2};

}  // namespace

EnergyMeter::EnergyMeter(const Nvml* nvml, const std::string& why, const std::string& pci_bus_id)
    : nvml_(nvml), gpu_(nullptr) {
  if (nvml == nullptr) {
    throw Error(
        format("energy cannot be measured: {}; measure time, or install NVIDIA's driver "
               "libraries with NVML",
               why.empty() ? "NVML is not there" : why));
  }
  gpu_ = nvml->device(pci_bus_id);
  if (!nvml->energy_joules(gpu_) && !nvml->power_watts(gpu_)) {
    throw Error(
        format("energy cannot be measured: the GPU at {} tells NVML neither energy nor power",
               pci_bus_id));
  }
}

EnergyReading EnergyMeter::measure(const std::function<int()>& run_some, Seconds least) const {
  return nvml_->energy_joules(gpu_) ? by_counter(run_some, least) : by_power(run_some, least);
}

EnergyReading EnergyMeter::by_counter(const std::function<int()>& run_some, Seconds least) const {
  const auto read = [&] { return nvml_->energy_joules(gpu_).value_or(0); };
  Stopwatch still;
  const auto run = [&] {
    if (still.elapsed() > kPatience) {
      throw Error(format("energy cannot be measured: NVML's counter did not move in {} s",
                         kPatience.count()));
    }
    return run_some();
  };
  // The counter moves a few times a second only: from one tick to another.
  const double before = read();
  double first = before;
  while ((first = read()) == before) run();
  const Stopwatch counting;
  still.restart();
  double last = first;
  Seconds counted_for{0};
  long long runs = 0, counted = 0;
  while (counted == 0 || counted_for < least) {
    runs += run();
    if (const double now = read(); now != last) {
      last = now;
      counted_for = counting.elapsed();
      counted = runs;
      still.restart();
    }
  }
  return {.joules_per_run = (last - first) / static_cast<double>(counted),
          .watts = (last - first) / counted_for.count()};
}

EnergyReading EnergyMeter::by_power(const std::function<int()>& run_some, Seconds least) const {
  const Stopwatch whole;
  Seconds last{0};
  double joules = 0;
  long long runs = 0;
  do {
    runs += run_some();
    const Seconds now = whole.elapsed();
    joules += nvml_->power_watts(gpu_).value_or(0) * (now - last).count();
    last = now;
  } while (last < least);
  return {.joules_per_run = joules / static_cast<double>(runs), .watts = joules / last.count()};
}

}  // namespace kernwright
