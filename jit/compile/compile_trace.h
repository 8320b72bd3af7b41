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
  bool is_doubtful = false;  ///< without types: the text was blamed for what it may not have caused
  PchUse pch = PchUse::none;
  double queue_ms = 0;  ///< until a worker was free
  double nvrtc_ms = 0;  ///< within nvrtcCompileProgram, all attempts
};

}  // namespace kernwright
