// From the arguments of a launch to work for a stream.
#pragma once

#include "sim/device/stream/work.h"

namespace kernwright::sim {

struct StreamUse;

/// Parameters as cuLaunchKernel takes them.
struct LaunchCall {
  CUfunction function = nullptr;
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint32_t shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  bool cooperative = false;
  std::array<std::uint32_t, 3> cluster{};  ///< blocks; zeros: as the function says
  std::shared_ptr<GreenContext> green{};   ///< of the stream
};

/// Checks the launch against the device and the function, and copies its parameters. Throws
/// Failure.
KernelWork prepare(const LaunchCall& launch, const Context& context);

/// The last of several attributes with the same id; null without any.
const CUlaunchAttributeValue* last_attribute(const CUlaunchConfig& config, CUlaunchAttributeID id);

/// cuEventRecord; null handles are ignored. Throws Failure.
void record_event(CUevent handle, const StreamUse& use);

}  // namespace kernwright::sim
