// The data behind a Device's pointer. For the sources of Device alone.
#pragma once

#include "core/device.h"

#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kernwright {

inline constexpr int kUnknownAttribute = std::numeric_limits<int>::min();
inline constexpr int kCachedAttributes = 160;

/// Why a device is lost.
struct DeviceLoss {
  CUresult code = CUDA_SUCCESS;
  std::string message;
};

struct Device::State {
  std::mutex mutex;  ///< guards the making of the context, and `losses`
  std::atomic<CUcontext> context{nullptr};
  std::array<std::atomic<int>, kCachedAttributes> attributes;
  std::atomic<const DeviceLoss*> loss{nullptr};  ///< the one that is told
  std::vector<std::unique_ptr<const DeviceLoss>> losses;
  std::mutex resetting;
  std::exception_ptr kept_fault;  ///< of keep_fault(); guarded by `mutex`
  std::atomic<Device*> successor{nullptr};
};

}  // namespace kernwright
