// The time of a compile by phase, and the assembler's figures for each kernel.
#pragma once

#include "jit/source/program_options.h"
#include "jit/source/source.h"

#include <string>
#include <vector>

namespace kernwright {

class Device;

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

/// Compiles the kernel `name` of a program's source once more for `device`, past all caches and
/// with no precompiled header, and measures. Throws what Program::kernel throws.
CompileProfile profile_compile(const Source& source, const ProgramOptions& options, Device& device,
                               const std::string& name);

/// The "spill" line of ptxas -v for the kernel with this lowered name; zeros if there is none.
KernelSpills read_spills(const std::string& log, const std::string& lowered);

/// The rows of the file written by NVRTC's --time; rows of the same phase are added up.
std::vector<PhaseTime> read_phase_times(const std::string& text);

}  // namespace kernwright
