// The cost of a run on a device without a clock.
#pragma once

#include "core/stream.h"
#include "tune/measure/measurement.h"

#include <functional>

namespace kernwright {

namespace sim {
struct LineCounts;
}

LaunchCounts launch_counts(const sim::LineCounts& total) noexcept;

/// Counts the launches of `run` on the simulated device. Throws the launches' errors, and
/// InvalidArgument while another profile is being recorded.
LaunchCounts count_launches(const std::function<void()>& run);

}  // namespace kernwright
