// The course of a compile: for reports, never stored.
#pragma once

#include "jit/compile/precompiled_headers.h"

#include <string>
#include <vector>

namespace kernwright {

/// A value. Times are in milliseconds.
struct CompileTrace {
  std::vector<std::string> options;  ///< NVRTC's command line
  int attempts = 1;                  ///< NVRTC compiles until it worked
  bool minimal = false;              ///< with --minimal
  bool is_provisional = false;       ///< without types, for a mistake that may not be the text's
  PchUse pch = PchUse::none;
  double queue_ms = 0;  ///< until a worker was free
  double nvrtc_ms = 0;  ///< within nvrtcCompileProgram, all attempts
};

}  // namespace kernwright
