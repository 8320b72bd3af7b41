// The device profile as a table.
#include "sim/device/profile.h"

#include "base/env.h"

#include <algorithm>
#include <span>

namespace kernwright::sim {
namespace {

struct Row {
  bool is_limit;
  int key;
  long long value;
};

#define KW_PROFILE_NAME(text)
#define KW_PROFILE_VERSION(value)
#define KW_PROFILE_PRIORITIES(least, greatest)
#define KW_PROFILE_LIMIT(key, value) {true, key, value},
#define KW_PROFILE_ATTRIBUTE(key, value) {false, key, value},
constexpr Row kRows[] = {
#include "sim_profile.inc"
};
/// The differences at 9.0.
constexpr Row kRows90[] = {
#include "sim_profile_90.inc"
};
#undef KW_PROFILE_LIMIT
#undef KW_PROFILE_ATTRIBUTE
#undef KW_PROFILE_NAME
#undef KW_PROFILE_VERSION
#undef KW_PROFILE_PRIORITIES
#define KW_PROFILE_ATTRIBUTE(key, value)
#define KW_PROFILE_LIMIT(key, value)
#define KW_PROFILE_NAME(text) text,
#define KW_PROFILE_VERSION(value) value,
#define KW_PROFILE_PRIORITIES(least, greatest) least, greatest,

constexpr bool fits(const Row& row) {
  return row.key >= 0 && row.key < (row.is_limit ? kLimitCount : kAttributeCount);
}
static_assert(std::ranges::all_of(kRows, fits) && std::ranges::all_of(kRows90, fits));

void fill(DeviceProfile& profile, std::span<const Row> rows) {
  for (const Row& row : rows) {
    const auto at = static_cast<std::size_t>(row.key);
    if (row.is_limit) {
      profile.limits[at] = row.value;
    } else {
      profile.attributes[at] = static_cast<int>(row.value);
    }
  }
}

DeviceProfile make_profile() {
  DeviceProfile profile{
#include "sim_profile.inc"
      env_choice(Env::sim_capability) == "9.0", {}, {}};
  fill(profile, kRows);
  if (profile.is_90) fill(profile, kRows90);
  return profile;
}

}  // namespace

const DeviceProfile& device_profile() {
  static const DeviceProfile profile = make_profile();
  return profile;
}

}  // namespace kernwright::sim
