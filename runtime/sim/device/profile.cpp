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

/// Null for a key without a row.
const Row* find(std::span<const Row> rows, bool is_limit, int key) noexcept {
  const auto found = std::ranges::find_if(
      rows, [&](const Row& row) { return row.key == key && row.is_limit == is_limit; });
  return found == rows.end() ? nullptr : &*found;
}

DeviceProfile make_profile() {
  DeviceProfile profile{
#include "sim_profile.inc"
      env_choice(Env::sim_capability) == "9.0", {}};
  for (int key = 0; key < kLimitCount; ++key) {
    const Row* row = profile.is_90 ? find(kRows90, true, key) : nullptr;
    if (row == nullptr) row = find(kRows, true, key);
    if (row != nullptr) profile.limits[static_cast<std::size_t>(key)] = row->value;
  }
  return profile;
}

}  // namespace

std::optional<int> DeviceProfile::attribute(int which) const noexcept {
  const Row* row = is_90 ? find(kRows90, false, which) : nullptr;
  if (row == nullptr) row = find(kRows, false, which);
  if (row == nullptr) return std::nullopt;
  return static_cast<int>(row->value);
}

const DeviceProfile& device_profile() {
  static const DeviceProfile profile = make_profile();
  return profile;
}

}  // namespace kernwright::sim
