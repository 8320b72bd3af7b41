// The device profile as a table.
#include "sim/device/profile.h"

#include "base/env.h"

#include <algorithm>
#include <iterator>

namespace kernwright::sim {
namespace {

struct Row {
  int key;
  long long value;
};

#define KW_PROFILE_NAME(text)
#define KW_PROFILE_VERSION(value)
#define KW_PROFILE_PRIORITIES(least, greatest)
#define KW_PROFILE_LIMIT(key, value)
#define KW_PROFILE_ATTRIBUTE(key, value) {key, value},
constexpr Row kAttributes[] = {
#include "sim_profile.inc"
};
constexpr Row kAttributes90[] = {
#include "sim_profile_90.inc"
};
#undef KW_PROFILE_ATTRIBUTE
#undef KW_PROFILE_LIMIT
#define KW_PROFILE_ATTRIBUTE(key, value)
#define KW_PROFILE_LIMIT(key, value) {key, value},
constexpr Row kLimits[] = {
#include "sim_profile.inc"
};
constexpr Row kLimits90[] = {
#include "sim_profile_90.inc"
};
#undef KW_PROFILE_LIMIT
#undef KW_PROFILE_NAME
#undef KW_PROFILE_VERSION
#undef KW_PROFILE_PRIORITIES
#define KW_PROFILE_LIMIT(key, value)
#define KW_PROFILE_NAME(text) text,
#define KW_PROFILE_VERSION(value) value,
#define KW_PROFILE_PRIORITIES(least, greatest) least, greatest,

DeviceProfile make_profile() {
  DeviceProfile profile{
#include "sim_profile.inc"
      env_choice(Env::sim_capability) == "9.0", {}};
  const auto take = [&](const Row& row) {
    if (row.key < kLimitCount) profile.limits[static_cast<std::size_t>(row.key)] = row.value;
  };
  for (const Row& row : kLimits) take(row);
  if (!profile.is_90) return profile;
  for (const Row& row : kLimits90) take(row);
  return profile;
}

}  // namespace

std::optional<int> DeviceProfile::attribute(int which) const noexcept {
  const auto is_wanted = [which](const Row& candidate) { return candidate.key == which; };
  if (is_90) {
    const Row* own = std::find_if(std::begin(kAttributes90), std::end(kAttributes90), is_wanted);
    if (own != std::end(kAttributes90)) return static_cast<int>(own->value);
  }
  const Row* row = std::find_if(std::begin(kAttributes), std::end(kAttributes), is_wanted);
  if (row == std::end(kAttributes)) return std::nullopt;
  return static_cast<int>(row->value);
}

const DeviceProfile& device_profile() {
  static const DeviceProfile profile = make_profile();
  return profile;
}

}  // namespace kernwright::sim
