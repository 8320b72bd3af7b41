// Warming up, choosing a batch, sampling, and waiting for a throttled clock.
#include "tune/measure/timer.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "driver/nvml.h"
#include "tune/measure/energy_meter.h"
#include "tune/measure/launch_counts.h"
#include "tune/measure/sampler.h"
#include "tune/measure/stopwatch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

namespace kernwright {
namespace {

constexpr Seconds kIdle{0.1};  // after that the clocks of a GPU may have fallen
constexpr double kSteady = 0.01;
constexpr double kGraphMs = 0.2;
constexpr int kMostBatch = 500;
constexpr int kLeastSamples = 3;

/// Runs that last some `ms`, at least one.
int runs_for(double ms, double of_one_ms, int most) {
  if (!(of_one_ms > 0)) return most;
  return static_cast<int>(std::clamp(std::ceil(ms / of_one_ms), 1.0, static_cast<double>(most)));
}

void check_work(const TimedWork& work, const MeasurePlan& plan) {
  plan.check();
  if (!work.queue) throw InvalidArgument("measuring work that is no function");
  if (work.copies == 0) throw InvalidArgument("measuring work with no copy of its inputs");
  if (plan.policy == CachePolicy::rotate && work.copies < 2) {
    throw InvalidArgument(
        format("measuring {} with the policy \"rotate\" needs two or more copies of its inputs",
               work.name));
  }
}

bool is_precise(const Measurement& m, double target) {
  const Interval interval = median_interval(m.times_ms);
  return interval.high - interval.low <= 2 * target * median(m.times_ms);
}

}  // namespace

struct Timer::State {
  State(Device& the_device, const ObjectCode* gate_code) : device(the_device) {
    if (device.is_simulated()) {
      counting_stream = Stream::create(device);
    } else if (gate_code != nullptr) {
      sampler.emplace(device, *gate_code);
    } else {
      sampler.emplace(device, *stream_gate_code(device));
    }
  }

  Measurement count(const TimedWork& work);
  Measurement sample(const TimedWork& work, const MeasurePlan& plan, const WaitLimits& limits);
  double first_runs(const TimedWork& work, const MeasurePlan& plan, const WaitLimits& limits);
  void warm_up(const TimedWork& work, const MeasurePlan& plan, double run_ms,
               const WaitLimits& limits);
  void take_samples(Measurement& m, const TimedWork& work, const MeasurePlan& plan,
                    const WaitLimits& limits);
  bool wait_for_clock(const TimedWork& work, const MeasurePlan& plan, Seconds& waited,
                      const WaitLimits& limits);
  void measure_energy(Measurement& m, const EnergyMeter& meter, const TimedWork& work,
                      const MeasurePlan& plan, const WaitLimits& limits);
  bool is_slowed_down() const;
  const Nvml* nvml(std::string* why = nullptr) const {
    return own_nvml != nullptr ? own_nvml : Nvml::system(why);
  }

  Device& device;
  std::optional<Sampler> sampler;  ///< of a GPU
  Stream counting_stream;          ///< of the simulated device
  const Nvml* own_nvml = nullptr;
  double steady_mhz = 0;  ///< of the last warm-up; 0: not known
  std::optional<Stopwatch> last_busy;
};

Timer::Timer(Device& device) : state_(std::make_unique<State>(device, nullptr)) {}
Timer::Timer(Device& device, const ObjectCode& gate_code)
    : state_(std::make_unique<State>(device, &gate_code)) {}
Timer::~Timer() = default;

Device& Timer::device() const noexcept { return state_->device; }
const Stream& Timer::stream() const noexcept {
  return state_->sampler ? state_->sampler->stream() : state_->counting_stream;
}
void Timer::use_nvml(const Nvml* nvml) noexcept { state_->own_nvml = nvml; }

Measurement Timer::measure(const TimedWork& work, const MeasurePlan& plan,
                           const WaitLimits& limits) {
  check_work(work, plan);
  check_wait(limits, format("measuring {}", work.name));
  if (!state_->device.is_simulated()) return state_->sample(work, plan, limits);
  if (plan.energy) {
    throw InvalidArgument("the simulated device has no energy: measure time, which is its counts");
  }
  Measurement counted = state_->count(work);
  counted.policy = plan.policy;
  return counted;
}

Measurement Timer::State::count(const TimedWork& work) {
  const Stopwatch watch;
  if (work.restore) work.restore(counting_stream);
  counting_stream.synchronize();
  Measurement m;
  m.counts = count_launches([&] {
    work.queue(counting_stream, 0);
    counting_stream.synchronize();
  });
  m.gpu_seconds = watch.elapsed().count();
  return m;
}

Measurement Timer::State::sample(const TimedWork& work, const MeasurePlan& plan,
                                 const WaitLimits& limits) {
  std::optional<EnergyMeter> meter;
  if (plan.energy) {
    std::string why;
    const Nvml* const source = nvml(&why);
    meter.emplace(source, why, device.pci_bus_id());
  }
  const Stopwatch watch;
  Measurement m;
  m.policy = plan.policy;
  m.is_gated = plan.is_gated;
  sampler->set_batch(work, 0);
  double run_ms = first_runs(work, plan, limits);
  warm_up(work, plan, run_ms, limits);
  if (plan.policy == CachePolicy::graph) {
    run_ms = sampler->take_many(work, runs_for(kGraphMs, run_ms, 20), limits).ms;
    m.batch = plan.batch > 0 ? plan.batch : runs_for(kGraphMs, run_ms, kMostBatch);
    sampler->set_batch(work, m.batch);
    sampler->take_many(work, 1, limits);  // the first launch uploads the graph
  }
  take_samples(m, work, plan, limits);
  m.summarize();
  if (meter) measure_energy(m, *meter, work, plan, limits);
  sampler->set_batch(work, 0);
  last_busy.emplace();
  m.gpu_seconds = watch.elapsed().count();
  return m;
}

/// Loads what the first run needs, then tells the time of one.
double Timer::State::first_runs(const TimedWork& work, const MeasurePlan& plan,
                                const WaitLimits& limits) {
  const double first = sampler->take_many(work, 1, limits).ms;
  // A long run has warmed the GPU up by itself, and is not repeated for a better estimate.
  if (first >= 1000 * plan.warm_up.count()) {
    last_busy.emplace();
    return first;
  }
  return sampler->take_many(work, 1, limits).ms;
}

/// Until the clock is steady under this work: one that draws more power has a lower one. A GPU that
/// was idle gets the plan's whole time.
void Timer::State::warm_up(const TimedWork& work, const MeasurePlan& plan, double run_ms,
                           const WaitLimits& limits) {
  const bool was_idle = !last_busy || last_busy->elapsed() > kIdle;
  const Seconds least = was_idle ? plan.warm_up : Seconds(0);
  const int runs = runs_for(2, run_ms, 200);
  const Stopwatch watch;
  double last = 0;
  bool is_steady = false;
  while (watch.elapsed() < plan.max_warm_up && (watch.elapsed() < least || !is_steady)) {
    const double now = sampler->take_many(work, runs, limits).clock_mhz.value_or(0);
    is_steady = now == 0 || (last > 0 && std::fabs(now / last - 1) < kSteady);
    last = now;
  }
  steady_mhz = last;
}

/// After a pause the GPU must be warm again, else it would be its idle clock that is seen.
bool Timer::State::wait_for_clock(const TimedWork& work, const MeasurePlan& plan, Seconds& waited,
                                  const WaitLimits& limits) {
  if (waited >= plan.max_throttle_wait) return false;
  const Seconds pause = std::clamp(waited, Seconds(0.05), Seconds(0.5));
  for (const Stopwatch sleeping; sleeping.elapsed() < pause;) {
    check_wait(limits, format("measuring {}", work.name));
    std::this_thread::sleep_for(kWaitSlice / 2);
  }
  waited += pause;
  const Stopwatch watch;
  while (watch.elapsed() < plan.warm_up) sampler->take_many(work, 1, limits);
  return true;
}

bool Timer::State::is_slowed_down() const {
  const Nvml* const source = nvml();
  if (source == nullptr) return false;
  try {
    const std::optional<ClockReasons> reasons =
        source->clock_reasons(source->device(device.pci_bus_id()));
    return reasons && (reasons->thermal || reasons->hardware);
  } catch (const Error&) {
    return false;  // NVML does not see this GPU: the clock itself has to tell
  }
}

void Timer::State::take_samples(Measurement& m, const TimedWork& work, const MeasurePlan& plan,
                                const WaitLimits& limits) {
  const Stopwatch watch;
  std::vector<double> clocks;
  Seconds waited{0};
  for (int taken = 0; static_cast<int>(m.times_ms.size()) < plan.max_samples;) {
    const Sample sample = sampler->take(work, plan.policy, m.is_gated, limits);
    if (sample.gave_up) {
      m.is_gated = false;  // the work waits for the device: without a gate, then
      continue;
    }
    const bool is_slow =
        sample.clock_mhz && steady_mhz > 0 && *sample.clock_mhz < plan.clock_floor * steady_mhz;
    if (is_slow && !m.is_throttled) {
      if (wait_for_clock(work, plan, waited, limits)) continue;
      m.is_throttled = true;
    }
    if (taken++ == 0) {
      m.first_ms = sample.ms;
      continue;
    }
    m.times_ms.push_back(sample.ms);
    if (sample.clock_mhz) clocks.push_back(*sample.clock_mhz);
    const auto count = static_cast<int>(m.times_ms.size());
    if (count >= plan.min_samples && is_precise(m, plan.target_noise)) break;
    if (watch.elapsed() - waited >= plan.max_time &&
        count >= std::min(plan.min_samples, kLeastSamples)) {
      break;
    }
  }
  if (!clocks.empty()) m.sm_clock_mhz = median(clocks);
  m.is_throttled = m.is_throttled || is_slowed_down();
}

void Timer::State::measure_energy(Measurement& m, const EnergyMeter& meter, const TimedWork& work,
                                  const MeasurePlan& plan, const WaitLimits& limits) {
  const int runs = runs_for(5, m.median_ms * sampler->batch(), 1000);
  const EnergyReading reading = meter.measure(
      [&] {
        sampler->take_many(work, runs, limits);
        return runs * sampler->batch();
      },
      plan.energy_time);
  m.energy_joules = reading.joules_per_run;
  m.power_watts = reading.watts;
}

TimedWork launch_work(const Kernel& kernel, LaunchConfig config, std::span<void* const> arguments) {
  config.stream = {};
  kernel.check(config);
  const KernelSignature& signature = kernel.signature();
  if (arguments.size() != signature.parameters.size()) {
    throw ArgumentError(format("{} takes {} arguments, not {}", signature.name,
                               signature.parameters.size(), arguments.size()));
  }
  std::vector<std::vector<std::byte>> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* bytes = static_cast<const std::byte*>(arguments[i]);
    values.emplace_back(bytes, bytes + signature.parameters[i].size);
  }
  return {.name = signature.name,
          .queue = [kernel, config, values = std::move(values)](const Stream& stream,
                                                                std::size_t) mutable {
            std::vector<void*> pointers;
            for (std::vector<std::byte>& value : values) pointers.push_back(value.data());
            LaunchConfig on_stream = config;
            on_stream.stream = stream;
            kernel.launch(on_stream, pointers);
          }};
}

}  // namespace kernwright
