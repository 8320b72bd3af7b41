// The device profile as a table.
#include "sim/device/profile.h"

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
#undef KW_PROFILE_ATTRIBUTE
#undef KW_PROFILE_LIMIT
#define KW_PROFILE_ATTRIBUTE(key, value)
#define KW_PROFILE_LIMIT(key, value) {key, value},
constexpr Row kLimits[] = {
#include "sim_profile.inc"
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
      {}};
  for (const Row& row : kLimits) {
    if (row.key < kLimitCount) profile.limits[static_cast<std::size_t>(row.key)] = row.value;
  }
  return profile;
}

}  // namespace

std::optional<int> DeviceProfile::attribute(int which) const noexcept {
  const Row* row = std::find_if(std::begin(kAttributes), std::end(kAttributes),
                                [which](const Row& candidate) { return candidate.key == which; });
  if (row == std::end(kAttributes)) return std::nullopt;
  return static_cast<int>(row->value);
}

const DeviceProfile& device_profile() noexcept {
  static const DeviceProfile profile = make_profile();
  return profile;
}

}  // namespace kernwright::sim
