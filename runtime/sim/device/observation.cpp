// Scopes that watch launches.
#include "sim/device/observation.h"

#include "base/errors.h"
#include "sim/device/platform.h"

namespace kernwright::sim {

bool Observation::begin(CUfunction function, const LaunchContext& launch) {
  return trace != nullptr && trace->function() == function && trace->begin(launch);
}

TraceScope::TraceScope(const TraceRequest& request)
    : recorder_(std::make_unique<TraceRecorder>(request)) {
  initialise_platform();
  Platform& instance = platform();
  const std::lock_guard execution(instance.execution);
  if (instance.observation.trace != nullptr) {
    throw InvalidArgument("a thread is traced already, and only one can be: end that trace first");
  }
  instance.observation.trace = recorder_.get();
}

TraceScope::~TraceScope() {
  try {
    Platform& instance = platform();
    const std::lock_guard execution(instance.execution);
    instance.observation.trace = nullptr;
  } catch (const Failure&) {
    // The process forked: its child has no devices.
  }
}

Trace TraceScope::trace() const { return recorder_->trace(); }

}  // namespace kernwright::sim
