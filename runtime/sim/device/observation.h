// Who watches launches of simulated devices.
#pragma once

#include "sim/observe/trace_recorder.h"

namespace kernwright::sim {

/// Touched with Platform::execution held.
struct Observation {
  TraceRecorder* trace = nullptr;  ///< null: no thread is traced

  /// A launch of `function` begins: whether a thread of it is traced.
  bool begin(CUfunction function, const LaunchContext& launch);
};

}  // namespace kernwright::sim
