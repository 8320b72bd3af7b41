// Observers of launches on simulated devices.
#pragma once

#include "sim/observe/line_profile_recorder.h"
#include "sim/observe/observed_launch.h"
#include "sim/observe/trace_recorder.h"

namespace kernwright::sim {

/// Touched with SimDriver::execution held.
struct Observation {
  TraceRecorder* trace = nullptr;          ///< null: no thread is traced
  LineProfileRecorder* profile = nullptr;  ///< null: lines are not counted

  struct Wanted {
    bool trace = false, counts = false;
    bool any() const noexcept { return trace || counts; }
  };
  /// A launch of `function` begins: returns the wanted observations.
  Wanted begin(CUfunction function, const LaunchContext& launch);
  /// The launch ended, on `fault` unless this is null.
  void end(const Wanted& wanted, const ObservedLaunch& launch, std::uint32_t entry,
           const Fault* fault);
};

}  // namespace kernwright::sim
