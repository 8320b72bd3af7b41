// Checks of a launch configuration, once as fast arithmetic and once as a message.
#include "core/launch/launch_limits.h"

#include "base/format.h"

namespace kernwright {
namespace {

constexpr const char* kNeedsHopper =
    "compute capability 9.0 and newer support it, and simulated devices with "
    "KERNWRIGHT_SIM_CAPABILITY=9.0 in the environment";

bool has_cluster(const LaunchConfig& config) noexcept { return config.cluster != Dim3{0, 0, 0}; }

bool within(const Dim3& value, const Dim3& limit) noexcept {
  // Unsigned arithmetic: 0 - 1 wraps to the largest value, so that one comparison also refuses 0.
  return value.x - 1 < limit.x && value.y - 1 < limit.y && value.z - 1 < limit.z;
}

std::string spell(const Dim3& value) { return format("{} x {} x {}", value.x, value.y, value.z); }

std::string explain_extents(const char* what, const Dim3& value, const Dim3& limit) {
  if (value.x == 0 || value.y == 0 || value.z == 0) {
    return format("{} of {}: every extent must be at least 1", what, spell(value));
  }
  return format("{} of {}: at most {}", what, spell(value), spell(limit));
}

bool divides(const Dim3& cluster, const Dim3& grid) noexcept {
  return grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
}

/// Rare attributes of launches: one comparison each skips all of this.
bool has_event(const LaunchConfig& config) noexcept {
  return config.programmatic_event.has_value() || config.launch_completion_event.has_value();
}

LimitViolation explain_events(const LaunchLimits& limits, const LaunchConfig& config) {
  if (config.programmatic_event && !limits.programmatic_dependent) {
    return {"event of a programmatic launch: not supported", kNeedsHopper};
  }
  if (config.launch_completion_event && !limits.launch_completion) {
    return {"launch-completion event: not supported", "drivers of CUDA 12.3 and newer support it"};
  }
  for (const auto& event : {config.programmatic_event, config.launch_completion_event}) {
    if (event && event->timing()) {
      return {"event of a launch with timing: it must be made without",
              "a launch can only record events that take no time stamps"};
    }
  }
  return {};
}

LimitViolation explain_cluster(const LaunchLimits& limits, const LaunchConfig& config) {
  const Dim3& cluster = config.cluster;
  if (limits.cluster_blocks == 0) {
    return {format("cluster of {}: clusters are not supported", spell(cluster)), kNeedsHopper};
  }
  if (cluster.x == 0 || cluster.y == 0 || cluster.z == 0) {
    return {format("cluster of {}: every extent must be at least 1, or all 0", spell(cluster)), {}};
  }
  if (cluster.count() > limits.cluster_blocks) {
    return {format("cluster of {} blocks ({}): at most {} blocks", cluster.count(), spell(cluster),
                   limits.cluster_blocks),
            {}};
  }
  if (!divides(cluster, config.grid)) {
    return {format("grid of {}: not a multiple of the cluster of {}", spell(config.grid),
                   spell(cluster)),
            {}};
  }
  if (limits.required_cluster != Dim3{0, 0, 0} && limits.required_cluster != cluster) {
    return {format("cluster of {}: the kernel was compiled for clusters of {}", spell(cluster),
                   spell(limits.required_cluster)),
            {}};
  }
  return {};
}

}  // namespace

bool LaunchLimits::allow(const LaunchConfig& config) const noexcept {
  if (!within(config.grid, grid) || !within(config.block, block)) return false;
  const std::uint64_t threads = config.block.count();
  if (threads > kernel_threads || threads > device_threads) return false;
  if (std::uint64_t{static_shared} + config.shared_bytes > block_shared) return false;
  if (config.cooperative && !cooperative) return false;
  if (config.programmatic_dependent && !programmatic_dependent) return false;
  if (config.priority < greatest_priority || config.priority > least_priority) return false;
  if (has_event(config) && !explain_events(*this, config).text.empty()) return false;
  if (required_cluster.x != 0 && !divides(required_cluster, config.grid)) return false;
  if (!has_cluster(config)) return true;
  const Dim3& cluster = config.cluster;
  return cluster.x != 0 && cluster.y != 0 && cluster.z != 0 && cluster.count() <= cluster_blocks &&
         divides(cluster, config.grid) && (required_cluster.x == 0 || required_cluster == cluster);
}

LimitViolation LaunchLimits::explain(const LaunchConfig& config) const {
  if (!within(config.grid, grid)) return {explain_extents("grid", config.grid, grid), {}};
  const std::uint64_t threads = config.block.count();
  const bool no_threads = config.block.x == 0 || config.block.y == 0 || config.block.z == 0;
  if (!no_threads && threads > device_threads) {
    return {format("block of {} threads ({}): at most {} threads", threads, spell(config.block),
                   device_threads),
            {}};
  }
  if (!within(config.block, block)) return {explain_extents("block", config.block, block), {}};
  if (threads > kernel_threads) {
    return {format("block of {} threads ({}): at most {} threads", threads, spell(config.block),
                   kernel_threads),
            "its registers or its __launch_bounds__ allow no more"};
  }
  if (std::uint64_t{static_shared} + config.shared_bytes > block_shared) {
    return {format("shared memory of {} bytes ({} dynamic and {} static): at most {} bytes",
                   std::uint64_t{static_shared} + config.shared_bytes, config.shared_bytes,
                   static_shared, block_shared),
            {}};
  }
  if (config.cooperative && !cooperative) {
    return {"cooperative launch: not supported", {}};
  }
  if (config.programmatic_dependent && !programmatic_dependent) {
    return {"programmatic dependent launch: not supported", kNeedsHopper};
  }
  if (config.priority < greatest_priority || config.priority > least_priority) {
    return {format("priority of {}: between {} (highest) and {}", config.priority,
                   greatest_priority, least_priority),
            {}};
  }
  if (LimitViolation violation = explain_events(*this, config); !violation.text.empty()) {
    return violation;
  }
  if (has_cluster(config)) {
    LimitViolation violation = explain_cluster(*this, config);
    if (!violation.text.empty()) return violation;
  }
  if (required_cluster.x != 0 && !divides(required_cluster, config.grid)) {
    return {format("grid of {}: not a multiple of the kernel's compiled cluster of {}",
                   spell(config.grid), spell(required_cluster)),
            {}};
  }
  return {};
}

}  // namespace kernwright
