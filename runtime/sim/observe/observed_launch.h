// One launch that is watched: what its blocks share.
#pragma once

#include "sim/observe/observed_program.h"

#include <cstdint>
#include <vector>

namespace kernwright::sim {

class TraceRecorder;

/// Made by the launching thread; thread-safe where blocks use it.
class ObservedLaunch {
 public:
  /// `trace` is null where no thread of this launch is traced.
  ObservedLaunch(const ObservedProgram& its_program, TraceRecorder* its_trace)
      : program(its_program), trace(its_trace) {}

  const ObservedProgram& program;
  TraceRecorder* const trace;
};

}  // namespace kernwright::sim
