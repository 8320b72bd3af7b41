// One NVRTC compile of a source with its name expressions and, on request, the type probe.
#pragma once

#include "jit/compiler.h"
#include "jit/diagnostics.h"
#include "jit/nvrtc_unit.h"

#include <set>
#include <string>
#include <vector>

namespace kernwright {

struct PlannedKernel {
  std::string name;
  bool is_required = false;  ///< asked for by the user, not only declared
};

/// What an attempt includes.
struct CompilePlan {
  std::vector<PlannedKernel> kernels;
  std::vector<std::string> symbols;
  bool probe = true;
  bool minimal = false;
  bool default_device = false;  ///< functions without __device__ are the device's too
};

/// Where the errors of a failed attempt lie.
struct AttemptErrors {
  bool in_source = false;       ///< in the user's text, a header or a later stage (ptxas)
  bool host_code = false;       ///< an unannotated function or variable was met
  bool in_probe = false;        ///< in the lines of the probe or in an expression that uses them
  std::set<std::string> names;  ///< kernels and symbols that the compiler does not know
};

/// The plan to begin with, kernels and symbols left out. --minimal is tried where the text includes
/// nothing and uses no name of what it leaves out. Unannotated functions become the device's at
/// once where nothing is included: with CUDA's C++ library this would make code of all its helpers.
CompilePlan first_plan(const CompileRequest& request);

class CompileAttempt {
 public:
  /// All arguments must outlive the attempt.
  CompileAttempt(const LoadedNvrtc& nvrtc, const CompileRequest& request, const CompilePlan& plan);

  /// False when the text is at fault.
  bool compile(const CompileDeadline& deadline);

  /// After success. Throws CompileError for a kernel that cannot be launched.
  ObjectCode object_code() const;

  /// After failure.
  AttemptErrors errors() const;
  /// The first line that the compiler said about a name, empty when it only failed to read it.
  std::string message_about(const std::string& name) const;
  [[noreturn]] void throw_compile_error() const;

 private:
  std::vector<KernelSignature> signatures(const std::string& ptx) const;
  KernelSignature signature(const PlannedKernel& kernel, const std::string& ptx) const;
  void add_symbols(ObjectCode& code) const;
  std::vector<Diagnostic> user_diagnostics() const;
  std::string user_log() const;

  const LoadedNvrtc& nvrtc_;
  const CompileRequest& request_;
  const CompilePlan& plan_;
  std::string program_path_;
  std::vector<std::string> options_;
  NvrtcUnit unit_;
  std::vector<LogMessage> messages_;
};

}  // namespace kernwright
