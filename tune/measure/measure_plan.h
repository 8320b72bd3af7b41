// The plan of a measurement: contents of the caches, number of samples, time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace kernwright {

/// The state of the L2 cache before a timed run, and the way of queuing it.
enum class CachePolicy : std::uint8_t {
  cold,    ///< L2 is overwritten whole before each sample, and its persisting lines are reset
  warm,    ///< the contents left by the previous run
  rotate,  ///< several copies of the inputs in turn, together larger than L2
  graph,   ///< a CUDA graph of many runs, time / count: for small kernels; L2 is warm
};

/// "cold", "warm", "rotate", "graph".
const char* cache_policy_name(CachePolicy policy) noexcept;
/// Throws InvalidArgument with a list of the names.
CachePolicy parse_cache_policy(std::string_view name);

using Seconds = std::chrono::duration<double>;

/// How a kernel is measured. check() says whether the numbers make sense.
struct MeasurePlan {
  CachePolicy policy = CachePolicy::cold;
  int min_samples = 10;          ///< without the first, which is always dropped
  int max_samples = 100;         ///< if equal to min_samples: fixed, unless max_time comes first
  double target_noise = 0.005;   ///< stop when the median's interval is +- this part of the median
  Seconds max_time{0.5};         ///< sampling ends then, when there are 3 samples (or min_samples)
  int batch = 0;                 ///< runs in a graph; 0: enough for some 0.2 ms, at most 500
  Seconds warm_up{0.02};         ///< runs before the first sample, on a GPU after idle time
  Seconds max_warm_up{1};        ///< then sampling begins even with an unsteady SM clock
  double clock_floor = 0.9;      ///< a sample below this part of the steady clock is throttled
  Seconds max_throttle_wait{2};  ///< for the clock to come back; then throttled samples count
  double cap_ms = 0;             ///< a first warm sample above it is the only one; 0: never
  bool is_gated = true;          ///< launches are queued behind a blocking wait
  bool energy = false;           ///< also measures energy; throws without NVML
  Seconds energy_time{0.4};      ///< least run time of the kernel for it

  /// Throws InvalidArgument for numbers without a meaning.
  void check() const;
};

}  // namespace kernwright
