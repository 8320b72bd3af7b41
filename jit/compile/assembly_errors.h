// Finds the source lines for errors of the assembler.
#pragma once

#include "jit/compile/compiler_texts.h"
#include "jit/compile/diagnostics.h"
#include "jit/compile/nvrtc_unit.h"

#include <map>
#include <string>
#include <vector>

namespace kernwright {

/// The input of a failed compile.
struct FailedCompile {
  std::string text;
  std::string path;
  std::vector<std::string> options;
};

/// The assembler counts lines of the PTX. Compiles once more for the PTX and its line table, and
/// gives these messages the file and line of their `asm`; within an `asm` of several lines, of the
/// instruction. Messages without a known place stay as they are.
void locate_assembly_errors(const LoadedNvrtc& nvrtc, const FailedCompile& failed,
                            const CompilerTexts& texts, const CompileDeadline& deadline,
                            std::vector<LogMessage>& messages);

}  // namespace kernwright
