// A device's sampler with its loop, or counts of the simulated device.
#include "tune/measure/timer.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "driver/nvml.h"
#include "tune/measure/energy_meter.h"
#include "tune/measure/launch_counts.h"
#include "tune/measure/measure_loop.h"
#include "tune/measure/sampler.h"

#include <optional>
#include <string>

namespace kernwright {
namespace {

/// Beyond the clocks' own knowledge: they are lower than they should be all the time.
bool is_slowed_down(const Device& device) {
  const Nvml* const nvml = Nvml::system();
  if (nvml == nullptr) return false;
  try {
    const auto reasons = nvml->clock_reasons(nvml->device(device.pci_bus_id()));
    return reasons && (reasons->thermal || reasons->hardware);
  } catch (const DeviceNotFound&) {
    return false;  // a part of a GPU: the clock itself has to tell
  }
}

Measurement count(const TimedWork& work, const Stream& stream) {
  const Stopwatch watch;
  if (work.restore) work.restore(stream);
  stream.synchronize();
  Measurement m;
  m.counts = count_launches([&] {
    work.queue(stream, 0);
    stream.synchronize();
  });
  m.gpu_seconds = watch.elapsed().count();
  return m;
}

}  // namespace

struct Timer::State {
  State(Device& the_device, const ObjectCode* gate_code) : device(the_device) {
    if (device.is_simulated()) {
      counting_stream = Stream::create(device);
      return;
    }
    sampler.emplace(device, gate_code != nullptr ? *gate_code : *stream_gate_code(device));
    loop.emplace(*sampler);
  }

  Device& device;
  std::optional<Sampler> sampler;  ///< of a GPU
  std::optional<MeasureLoop> loop;
  Stream counting_stream;  ///< of the simulated device
};

Timer::Timer(Device& device) : state_(std::make_unique<State>(device, nullptr)) {}
Timer::Timer(Device& device, const ObjectCode& gate_code)
    : state_(std::make_unique<State>(device, &gate_code)) {}
Timer::~Timer() = default;

Device& Timer::device() const noexcept { return state_->device; }
const Stream& Timer::stream() const noexcept {
  return state_->sampler ? state_->sampler->stream() : state_->counting_stream;
}

Measurement Timer::measure(const TimedWork& work, const MeasurePlan& plan,
                           const WaitLimits& limits) {
  work.check(plan);
  check_wait(limits, format("measuring {}", work.name));
  if (state_->device.is_simulated()) {
    if (plan.energy) {
      throw InvalidArgument(
          "the simulated device has no energy: measure time, which is its counts");
    }
    Measurement counted = count(work, state_->counting_stream);
    counted.policy = plan.policy;
    return counted;
  }
  std::optional<EnergyMeter> meter;
  if (plan.energy) {
    std::string why;
    const Nvml* const nvml = Nvml::system(&why);
    meter.emplace(nvml, why, state_->device.pci_bus_id());
  }
  Measurement m = state_->loop->run(work, plan, meter ? &*meter : nullptr, limits);
  m.is_throttled = m.is_throttled || is_slowed_down(state_->device);
  return m;
}

}  // namespace kernwright
