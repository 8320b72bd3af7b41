// One NVRTC compile of a source with its name expressions and, on request, the type probe.
#pragma once

#include "jit/compile/compiler.h"
#include "jit/compile/diagnostics.h"
#include "jit/compile/nvrtc_unit.h"
#include "jit/compile/precompiled_headers.h"
#include "jit/source/source_lexer.h"
#include "jit/source/source_prefix.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kernwright {

/// The ways to ask the compiler for types. If one fails for a kernel or variable, the next one
/// follows.
enum class Ask {
  type,      ///< kernel_type_probe()
  probe,     ///< kernel_probe(), symbol_probe()
  question,  ///< kernel_question(), symbol_question()
  nothing,   ///< not at all: names and the object code must do
};

struct PlannedKernel {
  std::string name;
  bool is_required = false;  ///< asked for by the user, not only declared
  Ask ask = Ask::probe;
};

struct PlannedSymbol {
  std::string name;
  bool is_managed = false;  ///< no name expression may name it
  Ask ask = Ask::probe;
};

/// The parts of an attempt.
struct CompilePlan {
  std::vector<PlannedKernel> kernels;
  std::vector<PlannedSymbol> symbols;
  std::vector<std::string> members;  ///< names that members of structs may have
  bool probe = true;
  bool minimal = false;
  bool default_device = false;  ///< functions without __device__ are the device's too
  /// The options' macros are #define lines in the text, after the compiler's preamble: its own
  /// names, such as T and x, must not be replaced.
  bool defines_in_text = false;
};

/// The places of a failed attempt's errors.
struct AttemptErrors {
  bool in_pch = false;               ///< in the making of a precompiled header, not in any text
  bool in_preamble = false;          ///< in the text that the compiler puts before every other
  bool in_source = false;            ///< in the user's text, a header or a later stage (ptxas)
  bool host_code = false;            ///< an unannotated function or variable was met
  bool in_probe = false;             ///< in the lines of the probe, whatever they were asked for
  std::set<std::size_t> unanswered;  ///< kernels whose types it does not tell, then symbols
  std::set<std::string> names;       ///< kernels and symbols that the compiler does not know
};

/// The plan to begin with, kernels and symbols left out. `source` is the request's text in tokens.
/// --minimal is tried if the text uses no name missing there and includes nothing known to need
/// one. Unannotated functions become the device's at once where nothing is included: with CUDA's
/// C++ library this would make code of all its helpers.
CompilePlan first_plan(const LoadedNvrtc& nvrtc, const CompileRequest& request,
                       const TokenizedSource& source);

/// For a text that compiled only without --minimal: the process then omits it for texts with the
/// same includes. For a text without includes nothing is remembered.
void remember_no_minimal(const LoadedNvrtc& nvrtc, const TokenizedSource& source);

class CompileAttempt {
 public:
  /// All arguments must outlive the attempt.
  CompileAttempt(const LoadedNvrtc& nvrtc, const CompileRequest& request, const CompilePlan& plan,
                 const TokenizedSource& source);

  /// Calls the compiler once. False when it reports errors: errors() says where they are. Throws
  /// Timeout at the deadline.
  bool compile(const CompileDeadline& deadline);
  /// Milliseconds within NVRTC.
  double nvrtc_ms() const noexcept { return nvrtc_ms_; }

  /// After success: kernels asked with Ask::type whose parameters have other types.
  std::set<std::string> misjudged_kernels() const;
  /// After success: names of kernels in the code outside the plan.
  std::vector<std::string> unseen_kernels() const;
  /// The same of variables.
  std::vector<std::string> unseen_variables() const;
  /// After success. Throws CompileError for a kernel that cannot be launched.
  ObjectCode object_code() const;

  /// After failure.
  AttemptErrors errors() const;
  /// The first line of the compiler's log about a name; empty if the name only could not be read.
  std::string message_about(const std::string& name) const;
  /// Compiles once more where the assembler's errors are to be given lines of the source.
  [[noreturn]] void throw_compile_error(const CompileDeadline& deadline);

 private:
  bool defines(const PlannedKernel& kernel, const std::string& ptx) const;
  std::string file_of_user(const std::string& file) const;
  std::vector<KernelSignature> signatures(const std::string& ptx) const;
  /// The name expressions for types, of every kernel and then of every symbol. Empty if nothing is
  /// asked.
  std::vector<std::string> probes() const;
  KernelSignature signature(std::size_t index, const std::string& ptx) const;
  void add_symbols(ObjectCode& code, const std::string& ptx) const;
  std::vector<Diagnostic> user_diagnostics() const;
  std::string user_log() const;
  PchPlan plan_pch() const;

  const LoadedNvrtc& nvrtc_;
  const CompileRequest& request_;
  const CompilePlan& plan_;
  const TokenizedSource& source_;
  std::string program_path_;
  std::vector<std::string> options_;  ///< without those of precompiled headers
  std::optional<SourcePrefix> prefix_;
  PchPlan pch_;
  NvrtcUnit unit_;
  std::vector<std::string> probes_;
  std::string log_;
  std::vector<LogMessage> messages_;
  bool is_pch_at_fault_ = false;
  double nvrtc_ms_ = 0;
};

}  // namespace kernwright
