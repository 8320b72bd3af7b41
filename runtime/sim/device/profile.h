// The simulated device's description: attributes and limits from profiles/*.json.
#pragma once

#include "driver/texture_parameters.h"

#include <array>
#include <cstddef>
#include <optional>

namespace kernwright::sim {

inline constexpr int kLimitCount = 10, kAttributeCount = 256;

/// Constant; the JSON files were turned into tables when the library was built.
struct DeviceProfile {
  const char* name;
  int driver_version;
  int priority_least, priority_greatest;
  bool is_90;  ///< compute capability 9.0, not 8.0: KERNWRIGHT_SIM_CAPABILITY, read once
  std::array<std::optional<std::size_t>, kLimitCount> limits;  ///< by CUlimit; empty = unsupported
  std::array<std::optional<int>, kAttributeCount> attributes;  ///< by CUdevice_attribute

  /// Nothing for an attribute unknown to the captured driver.
  std::optional<int> attribute(int which) const noexcept {
    if (which < 0 || which >= kAttributeCount) return std::nullopt;
    return attributes[static_cast<std::size_t>(which)];
  }
  /// For attributes present in every profile.
  int required(CUdevice_attribute which) const noexcept { return *attribute(which); }
  /// 80 for 8.0.
  int capability() const noexcept {
    return required(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
           required(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  }
};

/// Throws InvalidArgument for a wrong environment; never once a SimDriver was made.
const DeviceProfile& device_profile();

/// The limits of device_profile().
struct ProfileLimits final : DeviceLimits {
  int attribute(CUdevice_attribute which) const override {
    return device_profile().required(which);
  }
};

}  // namespace kernwright::sim
