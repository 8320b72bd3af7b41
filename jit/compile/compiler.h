// Turns a source text into object code: one or a few NVRTC compiles, and the meaning of their logs.
#pragma once

#include "driver/nvrtc_loader.h"
#include "jit/compile/compiler_texts.h"
#include "jit/compile/target.h"
#include "jit/object_code.h"
#include "jit/source/kernel_scanner.h"
#include "jit/source/program_options.h"
#include "jit/source/source.h"

#include <string>
#include <vector>

namespace kernwright {

/// Everything with influence on the result of a compile, except the compiler.
struct CompileRequest {
  Source source;
  ProgramOptions options;
  Target target;
  ScannedSource declared;                   ///< what the source declares
  std::vector<std::string> names;           ///< kernels that must be there, as the user wrote them
  bool with_declared = true;                ///< also every declared kernel that is no template
  std::vector<std::string> header_folders;  ///< CUDA's, behind the user's include folders
  IncludeClosure included = {};             ///< set by the compiler, as `texts`
  CompilerTexts texts = {};
};

/// Compiles in this thread. Thread-safe, as NVRTC is.
class Compiler {
 public:
  /// `nvrtc` must outlive the compiler.
  explicit Compiler(const LoadedNvrtc& nvrtc) : nvrtc_(nvrtc) {}

  /// Throws CompileError, NameNotFound (with the declared names), Timeout, Cancelled, Interrupted,
  /// InvalidArgument. The same request gives the same code, byte for byte. Ends at the limits of
  /// this thread and at the request's timeout, wherever NVRTC asks (see NvrtcUnit). For arbitrary
  /// texts there are compiles in other processes (compile_service.h).
  ObjectCode compile(const CompileRequest& request) const;

  /// The same with the assembler's words about each kernel in the log, NVRTC's own cache off, and
  /// the times of its phases written to `time_file` (empty: nowhere).
  ObjectCode compile_measured(const CompileRequest& request, const std::string& time_file) const;

 private:
  ObjectCode run(const CompileRequest& request) const;

  const LoadedNvrtc& nvrtc_;
};

/// Throws InvalidArgument for requests invalid for every compiler.
void validate(const CompileRequest& request);

}  // namespace kernwright
