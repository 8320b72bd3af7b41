// Scopes that watch launches.
#include "sim/device/launch/observation.h"

#include "base/errors.h"
#include "sim/device/sim_driver.h"

namespace kernwright::sim {

Observation::Wanted Observation::begin(CUfunction function, const LaunchContext& launch) {
  Wanted wanted;
  wanted.trace = trace != nullptr && trace->function() == function && trace->begin(launch);
  wanted.counts = profile != nullptr && profile->wants(function);
  return wanted;
}

void Observation::end(const Wanted& wanted, const ObservedLaunch& launch, std::uint32_t entry,
                      const FaultReport* fault) {
  if (wanted.trace) trace->end(fault);
  if (wanted.counts) profile->add(launch.program.program, entry, launch.total());
}

TraceScope::TraceScope(const TraceRequest& request)
    : recorder_(std::make_unique<TraceRecorder>(request)) {
  initialise_sim_driver();
  SimDriver& instance = sim_driver();
  const std::lock_guard execution(instance.execution);
  if (instance.observation.trace != nullptr) {
    throw InvalidArgument("a thread is traced already, and only one can be: end that trace first");
  }
  instance.observation.trace = recorder_.get();
}

TraceScope::~TraceScope() {
  try {
    SimDriver& instance = sim_driver();
    const std::lock_guard execution(instance.execution);
    instance.observation.trace = nullptr;
  } catch (const Failure&) {
    // The process forked: its child has no devices.
  }
}

Trace TraceScope::trace() const { return recorder_->trace(); }

LineProfileScope::LineProfileScope(std::vector<CUfunction> functions)
    : recorder_(std::make_unique<LineProfileRecorder>(std::move(functions))) {
  initialise_sim_driver();
  SimDriver& instance = sim_driver();
  const std::lock_guard execution(instance.execution);
  if (instance.observation.profile != nullptr)
    throw InvalidArgument("lines are counted already: end that profile first");
  instance.observation.profile = recorder_.get();
}

LineProfileScope::~LineProfileScope() {
  try {
    SimDriver& instance = sim_driver();
    const std::lock_guard execution(instance.execution);
    instance.observation.profile = nullptr;
  } catch (const Failure&) {
    // The process forked: its child has no devices.
  }
}

LineProfile LineProfileScope::profile() const {
  const std::lock_guard execution(sim_driver().execution);
  return recorder_->profile();
}

}  // namespace kernwright::sim
