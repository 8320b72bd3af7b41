// The results of measuring a kernel.
#pragma once

#include "tune/measure/measure_plan.h"
#include "tune/measure/statistics.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kernwright {

class ByteReader;
class ByteWriter;

/// The cost of a run on the simulated device: counts, the same at each run.
struct LaunchCounts {
  std::uint64_t instructions = 0;  ///< PTX instructions that warps executed
  std::uint64_t transactions = 0;  ///< 32-byte sectors of global and local memory, passes over the
                                   ///< banks of shared memory, passes of atomics
  /// The objective on a device without a clock.
  double cost() const noexcept { return static_cast<double>(instructions + transactions); }
  bool operator==(const LaunchCounts&) const = default;
};

/// Times are those of one run, in milliseconds. On the simulated device there are counts only.
struct Measurement {
  CachePolicy policy = CachePolicy::cold;
  std::vector<double> times_ms;  ///< in the order taken, without the first
  double first_ms = 0;           ///< the dropped sample
  double median_ms = 0;
  Interval interval_ms;                 ///< of the median, 95 %
  double noise = 0;                     ///< relative_noise() of the times
  int batch = 1;                        ///< runs in each sample
  double sm_clock_mhz = 0;              ///< median over the samples; 0: not known
  bool is_throttled = false;            ///< the clock fell and did not come back in time
  bool is_gated = false;                ///< launches were queued behind a blocking wait
  double gpu_seconds = 0;               ///< busy time of the device for this, with the warm-up
  std::optional<double> energy_joules;  ///< of one run
  std::optional<double> power_watts;
  std::optional<LaunchCounts> counts;  ///< on the simulated device

  /// Fills median, interval and noise from the times.
  void summarize();
};

/// The minimised quantity. energy: joules; edp: joules times seconds.
enum class Objective : std::uint8_t { time, energy, edp };

/// "time", "energy", "edp".
const char* objective_name(Objective objective) noexcept;

/// Milliseconds, joules, joule-seconds; on the simulated device the counts' cost, for `time` only.
/// Throws InvalidArgument if the measurement lacks the quantity.
double score(const Measurement& measurement, Objective objective);

void write(ByteWriter& out, const MeasurePlan& plan);
void write(ByteWriter& out, const Measurement& measurement);
/// Throw Error for bytes not made by write().
MeasurePlan read_measure_plan(ByteReader& in);
Measurement read_measurement(ByteReader& in);

}  // namespace kernwright
