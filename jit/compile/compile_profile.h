// The time of a compile by phase, and the assembler's figures for each kernel.
#pragma once

#include "jit/program.h"

#include <map>
#include <string>
#include <vector>

namespace kernwright {

struct PhaseTime {
  std::string name;  ///< "scan", "headers", then NVRTC's own: "CUDA C++ Frontend", ...
  double ms = 0;
};

/// Bytes a thread moves between registers and local memory for want of registers.
struct KernelSpills {
  std::uint64_t stack_bytes = 0, store_bytes = 0, load_bytes = 0;
};

struct CompileProfile {
  std::vector<PhaseTime> phases;  ///< in the order in which they happen
  double total_ms = 0;
  KernelSpills spills;  ///< of the kernel asked for
  std::vector<std::string>
      headers;  ///< what the source includes: files, and other names as written
};

/// Compiles the kernel once more for `device`, without caches and precompiled headers, and
/// measures. Throws the exceptions of Program::kernel.
CompileProfile profile_compile(const Program& program, Device& device, const std::string& name);

/// The "spill" line of ptxas -v for the kernel with this lowered name; zeros if there is none.
KernelSpills read_spills(const std::string& log, const std::string& lowered);

/// The rows of the file written by NVRTC's --time; rows of the same phase are added up.
std::vector<PhaseTime> read_phase_times(const std::string& text);

}  // namespace kernwright
