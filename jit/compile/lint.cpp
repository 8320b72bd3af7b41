// Runs NVRTC's syntax-only pass and reads its log.
#include "jit/compile/lint.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include "base/format.h"
#include "jit/compile/compiler_texts.h"
#include "jit/compile/diagnostics.h"
#include "jit/compile/nvrtc_unit.h"
#include "jit/compile/target.h"
#include "jit/source/include_closure.h"
#include "jit/source/macro_definitions.h"
#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

/// One pass over the text with one set of options.
class LintPass {
 public:
  LintPass(const LoadedNvrtc& nvrtc, const Source& source, const CompilerTexts& texts,
           const std::string& defines)
      : source_(source),
        texts_(texts),
        unit_(nvrtc, defines + "#line 1 " + quoted_name() + "\n" + texts.text, program_path(),
              texts.headers) {}

  /// True when the front end has nothing against the text.
  bool run(std::vector<std::string> arguments, bool minimal, bool default_device,
           const CompileDeadline& deadline) {
    arguments.push_back("--fdevice-syntax-only");
    if (minimal) arguments.push_back("--minimal");
    if (default_device) arguments.push_back("--device-as-default-execution-space");
    const bool is_good = unit_.compile(arguments, deadline);
    log_ = unit_.log();
    std::vector<LogMessage> messages = parse_compile_log(log_);
    place_at_end(messages, source_.name, texts_.text);
    for (LogMessage& message : messages) {
      message.diagnostic.file = user_name(message.diagnostic.file);
      diagnostics_.push_back(std::move(message.diagnostic));
    }
    return is_good;
  }

  /// Whether the log names a function that is neither host nor device code.
  bool met_host_code() const {
    return std::any_of(diagnostics_.begin(), diagnostics_.end(), [](const Diagnostic& d) {
      return d.message.find("-default-device") != std::string::npos;
    });
  }

  std::vector<Diagnostic> diagnostics(bool is_good, std::span<const std::string> folders,
                                      const std::set<std::string>& macros) {
    if (!is_good && std::none_of(diagnostics_.begin(), diagnostics_.end(), is_error)) {
      diagnostics_.push_back({Severity::error, log_, source_.name, 0, 0, {}, {}});
    }
    add_hints(diagnostics_, folders, macros);
    shift_lines(diagnostics_, source_.name, source_.first_line);
    return std::move(diagnostics_);
  }

 private:
  static bool is_error(const Diagnostic& d) { return d.severity == Severity::error; }

  std::string quoted_name() const {
    std::string result = "\"";
    for (const char c : texts_.name) {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
    return result + '"';
  }

  /// Quoted includes are looked for beside this: nothing lies below a device.
  std::string program_path() const {
    const std::string name = std::filesystem::path(source_.name).filename().string();
    return (source_.directory.empty() ? "/dev/null" : source_.directory) + "/" +
           (name.empty() ? "kernel.cu" : name);
  }

  const Source& source_;
  const CompilerTexts& texts_;
  NvrtcUnit unit_;
  std::string log_;
  std::vector<Diagnostic> diagnostics_;
};

std::string lint_arch(const Source& source, const ProgramOptions& options,
                      const IncludeClosure& included) {
  if (!options.arch.empty()) return parse_arch(options.arch).virtual_name();
  if (!included.asks_for_arch_specific) return "compute_80";
  return source.text.find("tcgen05") == std::string::npos ? "compute_90a" : "compute_100a";
}

std::vector<Diagnostic> lint_with(const LoadedNvrtc& nvrtc, const Source& source,
                                  const ProgramOptions& options, const CompilerTexts& texts,
                                  const std::vector<std::string>& arguments,
                                  const std::vector<std::string>& folders,
                                  const CompileDeadline& deadline) {
  const TokenizedSource tokens = tokenize(texts.text);
  const bool includes_nothing = tokens.includes.empty();
  // The built-in declarations behind --minimal are read only for texts with a use of them.
  bool minimal = options.minimal == Tristate::on ||
                 (options.minimal == Tristate::automatic && includes_nothing);
  bool default_device = includes_nothing;
  for (;;) {
    LintPass pass(nvrtc, source, texts, define_lines(options));
    const bool is_good = pass.run(arguments, minimal, default_device, deadline);
    if (!is_good && minimal && options.minimal == Tristate::automatic) {
      minimal = false;
    } else if (!is_good && !default_device && pass.met_host_code()) {
      default_device = true;
    } else {
      return pass.diagnostics(is_good, folders, macro_names(options, tokens));
    }
  }
}

}  // namespace

std::vector<Diagnostic> lint(const LoadedNvrtc& nvrtc, const Source& source,
                             const ProgramOptions& options, const HeaderPlaces& places) {
  validate(source);
  validate(options);
  const IncludeClosure included = include_closure(source, options);
  // It holds the folders open.
  const CudaHeaders headers =
      included.needs_cuda_headers ? cuda_headers(nvrtc, places) : CudaHeaders();
  // Macros stand after the compiler's preamble, because its own names include T.
  ProgramOptions plain = without_macros(options);
  plain.minimal = Tristate::off;
  plain.pch = Tristate::off;
  const auto arguments =
      to_nvrtc_options(plain, lint_arch(source, options, included), headers.folders);
  const CompilerTexts texts = compiler_texts(source, options, included);
  const CompileDeadline deadline(current_wait_limits().within(options.timeout),
                                 format("compiling {}", source.name));
  return lint_with(nvrtc, source, options, texts, arguments, headers.folders, deadline);
}

}  // namespace kernwright
