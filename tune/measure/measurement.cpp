// A measurement's summary, its score, and its way between processes.
#include "tune/measure/measurement.h"

#include "base/byte_reader.h"
#include "base/errors.h"
#include "base/format.h"

#include <array>

namespace kernwright {
namespace {

constexpr std::array kObjectives = {"time", "energy", "edp"};
constexpr std::uint32_t kMostTimes = 10'000'000;

void write(ByteWriter& out, const std::optional<double>& number) {
  out.u8(number ? 1 : 0);
  out.f64(number.value_or(0));
}

std::optional<double> read_number(ByteReader& in) {
  const bool is_there = in.u8() != 0;
  const double number = in.f64();
  return is_there ? std::optional(number) : std::nullopt;
}

CachePolicy read_policy(ByteReader& in) {
  const std::uint8_t policy = in.u8();
  if (policy > static_cast<std::uint8_t>(CachePolicy::graph)) {
    throw Error(format("a cache policy of number {}", policy));
  }
  return static_cast<CachePolicy>(policy);
}

}  // namespace

void Measurement::summarize() {
  median_ms = median(times_ms);
  interval_ms = median_interval(times_ms);
  noise = relative_noise(times_ms);
}

const char* objective_name(Objective objective) noexcept {
  return kObjectives[static_cast<std::size_t>(objective)];
}

double score(const Measurement& measurement, Objective objective) {
  if (objective == Objective::time) {
    if (measurement.counts) return measurement.counts->cost();
    if (!measurement.times_ms.empty()) return measurement.median_ms;
    throw InvalidArgument("the objective \"time\" needs samples, and the measurement has none");
  }
  if (!measurement.energy_joules) {
    throw InvalidArgument(format(
        "the objective \"{}\" needs energy, which was not measured{}: set `energy` in the plan",
        objective_name(objective),
        measurement.counts ? " (the simulated device has none; use \"time\", which is its counts)"
                           : ""));
  }
  const double joules = *measurement.energy_joules;
  return objective == Objective::energy ? joules : joules * measurement.median_ms / 1000;
}

void write(ByteWriter& out, const MeasurePlan& plan) {
  const auto& [policy, min_samples, max_samples, target_noise, max_time, batch, warm_up,
               max_warm_up, clock_floor, max_throttle_wait, cap_ms, is_gated, energy, energy_time] =
      plan;
  out.u8(static_cast<std::uint8_t>(policy));
  for (const int number : {min_samples, max_samples, batch}) out.i32(number);
  for (const double number :
       {target_noise, max_time.count(), warm_up.count(), max_warm_up.count(), clock_floor,
        max_throttle_wait.count(), energy_time.count(), cap_ms}) {
    out.f64(number);
  }
  for (const bool flag : {is_gated, energy}) out.u8(flag ? 1 : 0);
}

MeasurePlan read_measure_plan(ByteReader& in) {
  MeasurePlan plan;
  plan.policy = read_policy(in);
  for (int* number : {&plan.min_samples, &plan.max_samples, &plan.batch}) *number = in.i32();
  plan.target_noise = in.f64();
  for (Seconds* time : {&plan.max_time, &plan.warm_up, &plan.max_warm_up})
    *time = Seconds(in.f64());
  plan.clock_floor = in.f64();
  for (Seconds* time : {&plan.max_throttle_wait, &plan.energy_time}) *time = Seconds(in.f64());
  plan.cap_ms = in.f64();
  for (bool* flag : {&plan.is_gated, &plan.energy}) *flag = in.u8() != 0;
  plan.check();
  return plan;
}

void write(ByteWriter& out, const Measurement& measurement) {
  const auto& [policy, times_ms, first_ms, median_ms, interval_ms, noise, batch, sm_clock_mhz,
               is_throttled, is_gated, gpu_seconds, energy_joules, power_watts, counts] =
      measurement;
  out.u8(static_cast<std::uint8_t>(policy));
  out.u32(static_cast<std::uint32_t>(times_ms.size()));
  for (const double time : times_ms) out.f64(time);
  for (const double number :
       {first_ms, median_ms, interval_ms.low, interval_ms.high, noise, sm_clock_mhz, gpu_seconds}) {
    out.f64(number);
  }
  out.i32(batch);
  for (const bool flag : {is_throttled, is_gated}) out.u8(flag ? 1 : 0);
  write(out, energy_joules);
  write(out, power_watts);
  out.u8(counts ? 1 : 0);
  out.u64(counts ? counts->instructions : 0);
  out.u64(counts ? counts->transactions : 0);
}

Measurement read_measurement(ByteReader& in) {
  Measurement m;
  m.policy = read_policy(in);
  const std::uint32_t count = in.u32();
  if (count > kMostTimes) throw Error(format("a measurement of {} samples", count));
  m.times_ms.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) m.times_ms.push_back(in.f64());
  for (double* number : {&m.first_ms, &m.median_ms, &m.interval_ms.low, &m.interval_ms.high,
                         &m.noise, &m.sm_clock_mhz, &m.gpu_seconds}) {
    *number = in.f64();
  }
  m.batch = in.i32();
  for (bool* flag : {&m.is_throttled, &m.is_gated}) *flag = in.u8() != 0;
  m.energy_joules = read_number(in);
  m.power_watts = read_number(in);
  const bool has_counts = in.u8() != 0;
  const LaunchCounts counts{.instructions = in.u64(), .transactions = in.u64()};
  if (has_counts) m.counts = counts;
  return m;
}

}  // namespace kernwright
