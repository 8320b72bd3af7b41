// Turns a source text into object code: one or a few NVRTC compiles, and the meaning of their logs.
#pragma once

#include "driver/nvrtc_loader.h"
#include "jit/compile/compiler_texts.h"
#include "jit/compile/target.h"
#include "jit/object_code.h"
#include "jit/source/cuda_headers.h"
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
  ScannedSource declared;          ///< what the source declares
  std::vector<std::string> names;  ///< kernels that must be there, as the user wrote them
  bool with_declared = true;       ///< also every declared kernel that is no template
  bool with_members =
      true;  ///< signatures tell the members of structs, which values in Python need
  std::vector<std::string> header_folders;  ///< CUDA's, behind the user's include folders
  IncludeClosure included = {};             ///< set by the compiler, as `texts`
  CompilerTexts texts = {};
};

/// One compile, for any process.
struct CompileJob {
  CompileRequest request;          ///< without header folders of CUDA's
  bool with_cuda_headers = false;  ///< found by whoever compiles
  bool is_measured = false;        ///< with the times of the phases
};

struct CompileResult {
  ObjectCode code;                   ///< with its trace; compile_ms includes the waiting
  std::vector<std::string> folders;  ///< of CUDA's headers, where their files may change
  std::string note;                  ///< why NVRTC's own headers were not used; mostly empty
  std::string phase_times;           ///< what NVRTC's --time wrote, of a measured compile
};

/// Compiles with the loaded library in this thread. Throws CompileError, NameNotFound (with the
/// declared names), Timeout, Cancelled, Interrupted, InvalidArgument. The same request gives the
/// same code, byte for byte. Ends at the limits of this thread and at the request's timeout,
/// wherever NVRTC asks (see NvrtcUnit). For arbitrary texts there are compiles in other processes
/// (compile_service.h). A measured compile has the assembler's words about each kernel in its log.
/// Thread-safe, as NVRTC is.
CompileResult run_compile(const LoadedNvrtc& nvrtc, const CompileJob& job,
                          const HeaderPlaces& places);

/// run_compile() of a request as it is, without measurement.
class Compiler {
 public:
  /// `nvrtc` must outlive the compiler.
  explicit Compiler(const LoadedNvrtc& nvrtc) : nvrtc_(nvrtc) {}

  ObjectCode compile(const CompileRequest& request) const;

 private:
  const LoadedNvrtc& nvrtc_;
};

/// Throws InvalidArgument for requests invalid for every compiler.
void validate(const CompileRequest& request);

}  // namespace kernwright
