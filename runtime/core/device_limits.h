// The limits of a device, for rules that a driver of any kind has.
#pragma once

#include "core/device.h"
#include "driver/texture_parameters.h"

namespace kernwright {

class LimitsReader final : public DeviceLimits {
 public:
  explicit LimitsReader(const Device& device) : device_(device) {}
  int attribute(CUdevice_attribute which) const override { return device_.attribute(which); }

 private:
  const Device& device_;
};

}  // namespace kernwright
