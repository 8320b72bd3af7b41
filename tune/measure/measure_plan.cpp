// Names of cache policies, and checks of plans.
#include "tune/measure/measure_plan.h"

#include "base/errors.h"
#include "base/format.h"

#include <array>
#include <cmath>
#include <string>

namespace kernwright {
namespace {

constexpr std::array kPolicies = {"cold", "warm", "rotate", "graph"};

void require(bool condition, std::string_view message) {
  if (!condition) throw InvalidArgument(format("a measuring plan with {}", message));
}

}  // namespace

const char* cache_policy_name(CachePolicy policy) noexcept {
  return kPolicies[static_cast<std::size_t>(policy)];
}

CachePolicy parse_cache_policy(std::string_view name) {
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    if (name == kPolicies[i]) return static_cast<CachePolicy>(i);
  }
  throw InvalidArgument(
      format("unknown cache policy \"{}\": use cold, warm, rotate or graph", name));
}

void MeasurePlan::check() const {
  const auto is_time = [](Seconds time) {
    return std::isfinite(time.count()) && time.count() >= 0;
  };
  require(min_samples >= 1 && max_samples >= min_samples,
          format("min_samples={}, max_samples={}: both at least 1, and max_samples not below "
                 "min_samples",
                 min_samples, max_samples));
  require(target_noise >= 0, format("target_noise={}: it must be at least 0", target_noise));
  require(batch >= 0 && batch <= 10000, format("batch={}: it must be 0 to 10000", batch));
  require(clock_floor >= 0 && clock_floor < 1,
          format("clock_floor={}: it must be at least 0 and below 1", clock_floor));
  require(std::isfinite(cap_ms) && cap_ms >= 0, format("cap_ms={}: it is 0 or a time", cap_ms));
  require(is_time(max_time) && is_time(warm_up) && is_time(max_warm_up) &&
              is_time(max_throttle_wait) && is_time(energy_time),
          "a time that is negative or not finite");
}

}  // namespace kernwright
