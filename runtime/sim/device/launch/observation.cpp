// Scopes for watching launches.
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
                      const Fault* fault) {
  if (wanted.trace) trace->end(fault);
  if (wanted.counts) profile->add(launch.program.program, entry, launch.total());
}

TraceScope::TraceScope(const TraceRequest& request)
    : recorder_(std::make_unique<TraceRecorder>(request)) {
  const QuietDriver quiet;
  TraceRecorder*& trace = quiet.driver.observation.trace;
  if (trace != nullptr)
    throw InvalidArgument("a thread is traced already, and only one can be: end that trace first");
  trace = recorder_.get();
}

TraceScope::~TraceScope() {
  change_at_end([](SimDriver& driver) { driver.observation.trace = nullptr; });
}

Trace TraceScope::trace() const { return recorder_->trace(); }

LineProfileScope::LineProfileScope(std::vector<CUfunction> functions)
    : recorder_(std::make_unique<LineProfileRecorder>(std::move(functions))) {
  const QuietDriver quiet;
  LineProfileRecorder*& profile = quiet.driver.observation.profile;
  if (profile != nullptr)
    throw InvalidArgument("lines are counted already: end that profile first");
  profile = recorder_.get();
}

LineProfileScope::~LineProfileScope() {
  change_at_end([](SimDriver& driver) { driver.observation.profile = nullptr; });
}

LineProfile LineProfileScope::profile() const {
  const std::lock_guard execution(sim_driver().execution);
  return recorder_->profile();
}

}  // namespace kernwright::sim
