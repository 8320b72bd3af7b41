// Assembles the text for NVRTC, compiles it and reads the results.
#include "jit/compile/compile_attempt.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/errors.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/log.h"
#include "jit/compile/assembly_errors.h"
#include "jit/compile/compile_trace.h"
#include "jit/compile/ptx_source_lines.h"
#include "jit/signature/probe.h"
#include "jit/signature/ptx_parameters.h"
#include "jit/signature/signature_builder.h"
#include "jit/signature/variable_names.h"
#include "jit/source/macro_definitions.h"
#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

/// NVRTC looks for quoted includes in the folder of the program's name. A device file has no files
/// below it, so a source without a file sees nothing of the current folder.
constexpr std::string_view kNoFolder = "/dev/null";

std::string program_path(const Source& source) {
  std::string name = compiler_name(std::filesystem::path(source.name).filename().string());
  if (name.empty()) name = "kernel.cu";
  const std::string& folder = source.directory;
  return (folder.empty() ? std::string(kNoFolder) : folder) + "/" + name;
}

/// The name of the source as the text of a #line directive.
std::string quoted(const std::string& name) {
  std::string result = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

/// A line for every kernel and symbol, blank where it is asked otherwise; none where all are.
std::vector<std::string> questions(const CompilePlan& plan) {
  std::vector<std::string> lines;
  bool any = false;
  const auto add = [&](Ask ask, const std::string& question) {
    any = any || ask == Ask::question;
    lines.push_back(ask == Ask::question ? question : std::string());
  };
  for (const PlannedKernel& kernel : plan.kernels) {
    add(kernel.ask, kernel_question(lines.size(), kernel.name));
  }
  for (const PlannedSymbol& symbol : plan.symbols) {
    add(symbol.ask, symbol_question(lines.size(), symbol.name));
  }
  if (!any) lines.clear();
  return lines;
}

/// Whether the source may define nothing of external linkage. Not for code to be linked: a linker
/// would meet kUnitDefinition more than once.
bool needs_unit(const CompileRequest& request) {
  const auto& kernels = request.declared.kernels;
  const auto& extra = request.options.extra;
  return std::all_of(kernels.begin(), kernels.end(), [](const auto& k) { return k.is_template; }) &&
         std::none_of(extra.begin(), extra.end(), [](const std::string& option) {
           return option.find("rdc") != std::string::npos || option == "-dc" ||
                  option.find("device-c") != std::string::npos;
         });
}

/// For a precompiled header, only #include lines may stand between the compiler's own preamble and
/// the first declaration. A #line right after them would prevent the header, so a declaration
/// stands between.
std::string assembled_text(const CompileRequest& request, const CompilePlan& plan,
                           const std::optional<SourcePrefix>& prefix) {
  const std::string& source = request.texts.text;
  const std::size_t bytes = prefix ? prefix->bytes : 0;
  std::string text;
  text.reserve(source.size() + 4096);
  if (plan.defines_in_text) text += define_lines(request.options);
  text.append(source, 0, bytes);
  if (prefix) text += "static_assert(true, \"\");\n";
  text += format("#line {} {}\n", prefix ? prefix->lines + 1 : 1, quoted(request.texts.name));
  text.append(source, bytes);
  if (plan.probe) text += probe_text(plan.members, questions(plan));
  if (plan.probe && needs_unit(request)) text += kUnitDefinition;
  return text;
}

std::vector<std::string> nvrtc_options(const CompileRequest& request, const CompilePlan& plan) {
  std::vector<std::string> options =
      to_nvrtc_options(plan.defines_in_text ? without_macros(request.options) : request.options,
                       request.target.nvrtc_arch, request.header_folders);
  if (plan.default_device) options.push_back("--device-as-default-execution-space");
  if (plan.minimal) options.push_back("--minimal");
  return options;
}

std::vector<std::string> with_pch(std::vector<std::string> options, const PchPlan& pch) {
  if (pch.use == PchUse::none) return options;
  options.insert(options.end(), {"--pch", "--pch-dir=" + pch.folder, "--pch-messages=true",
                                 // of the #line behind the includes
                                 "--diag-suppress=20283"});
  return options;
}

/// NVRTC's messages about precompiled headers; the user's text has no part in them. Whole lines.
constexpr std::string_view kPchMessage = " precompiled header file \"";

std::string without_pch_messages(const std::string& log) {
  std::string result;
  bool was_removed = false;
  for (std::size_t at = 0; at < log.size();) {
    const auto end = std::min(log.find('\n', at), log.size() - 1) + 1;
    const std::string_view line = std::string_view(log).substr(at, end - at);
    const bool remove = line.find(kPchMessage) != std::string_view::npos && line.starts_with('"');
    if (!remove && !(was_removed && line == "\n")) result += line;
    was_removed = remove;
    at = end;
  }
  return result;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

bool is_error(const Diagnostic& diagnostic) { return diagnostic.severity == Severity::error; }

/// From 12.9 on, NVRTC keeps a cache of results in addition to the driver's. This cache ignores
/// --ftz and --prec-div (seen with NVRTC 13.0 and driver 580: with --ftz=true it gave the code
/// without), and omits the assembler's figures. Our cache respects every option.
std::vector<std::string> without_nvrtc_cache(std::vector<std::string> options,
                                             const LoadedNvrtc& nvrtc) {
  const auto is_there = [&](std::string_view option) {
    return std::find(options.begin(), options.end(), option) != options.end();
  };
  if (std::pair(nvrtc.major, nvrtc.minor) >= std::pair(12, 9) && !is_there("--no-cache") &&
      !is_there("-no-cache")) {
    options.push_back("--no-cache");
  }
  return options;
}

}  // namespace

CompileAttempt::CompileAttempt(const LoadedNvrtc& nvrtc, const CompileRequest& request,
                               const CompilePlan& plan, const TokenizedSource& source)
    : nvrtc_(nvrtc),
      request_(request),
      plan_(plan),
      source_(source),
      program_path_(program_path(request.source)),
      options_(without_nvrtc_cache(nvrtc_options(request, plan), nvrtc)),
      prefix_(source_prefix(request.texts.text, source)),
      pch_(plan_pch()),
      unit_(nvrtc, assembled_text(request, plan, pch_.use == PchUse::none ? std::nullopt : prefix_),
            program_path_, request.texts.headers),
      probes_(probes()) {
  for (const PlannedKernel& kernel : plan.kernels) unit_.add_name(kernel.name);
  for (const PlannedSymbol& symbol : plan.symbols) {
    if (!symbol.is_managed) unit_.add_name("&" + symbol.name);
  }
  for (const std::string& probe : probes_) {
    if (!probe.empty()) unit_.add_name(probe);
  }
}

std::vector<std::string> CompileAttempt::probes() const {
  std::vector<std::string> result;
  const auto add = [&](Ask ask, const std::string& probe) {
    const bool asks = plan_.probe && ask != Ask::nothing;
    result.push_back(!asks                  ? std::string()
                     : ask == Ask::question ? question_name(result.size())
                                            : probe);
  };
  for (const PlannedKernel& kernel : plan_.kernels) {
    add(kernel.ask,
        kernel.ask == Ask::type ? kernel_type_probe(kernel.name) : kernel_probe(kernel.name));
  }
  for (const PlannedSymbol& symbol : plan_.symbols) add(symbol.ask, symbol_probe(symbol.name));
  return result;
}

PchPlan CompileAttempt::plan_pch() const {
  const ProgramOptions& options = request_.options;
  if (!prefix_ || options.pch == Tristate::off) return {};
  Hasher key;
  // Each open NVRTC has its own precompiled headers.
  key.field(reinterpret_cast<std::uintptr_t>(nvrtc_.api.nvrtcCompileProgram));
  key.field(nvrtc_.version()).field(request_.source.directory);
  for (const std::string& option : options_) key.field(option);
  key.field(plan_.defines_in_text ? define_lines(options) : std::string());
  key.field(std::string_view(request_.texts.text).substr(0, prefix_->bytes));
  for (const auto& [name, text] : request_.texts.headers) key.field(name).field(text);
  const IncludeClosure& included = request_.included;
  if (!included.is_complete) return {};  // a header could change without being noticed
  for (const IncludedFile& file : included.files) {
    key.field(file.path).field(file.hash.to_hex());
  }
  return PrecompiledHeaders::process().plan(nvrtc_, key.digest(), options.pch);
}

bool CompileAttempt::compile(const CompileDeadline& deadline) {
  const auto begin = std::chrono::steady_clock::now();
  bool compiled = false;
  try {
    compiled = unit_.compile(with_pch(options_, pch_), deadline);
  } catch (...) {
    PrecompiledHeaders::process().done(pch_, NVRTC_ERROR_PCH_CREATE, false);
    throw;
  }
  const std::string log = unit_.log();
  log_ = without_pch_messages(log);
  messages_ = parse_compile_log(log_);
  if (pch_.use != PchUse::none) {
    const bool used = log.find(": using" + std::string(kPchMessage)) != std::string::npos;
    nvrtcResult status = unit_.pch_create_status();
    // If its heap cannot be allocated, NVRTC fails with a message without a place in the text.
    is_pch_at_fault_ = !compiled && !used && status != NVRTC_SUCCESS && messages_.empty();
    if (is_pch_at_fault_) status = NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED;
    PrecompiledHeaders::process().done(pch_, status, used);
    pch_.use = status == NVRTC_SUCCESS ? PchUse::make : used ? PchUse::use : PchUse::none;
  }
  place_at_end(messages_, request_.source.name, request_.texts.text);
  for (LogMessage& message : messages_) {
    message.diagnostic.file = file_of_user(message.diagnostic.file);
    message.diagnostic.message = user_name(std::move(message.diagnostic.message));
  }
  nvrtc_ms_ =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return compiled;
}

/// The user's name of a file with another name for the compiler: the source, and a path with a '"'.
std::string CompileAttempt::file_of_user(const std::string& file) const {
  return file == program_path_ ? request_.source.name : user_name(file);
}

std::set<std::string> CompileAttempt::misjudged_kernels() const {
  std::set<std::string> names;
  for (std::size_t i = 0; i < plan_.kernels.size(); ++i) {
    if (probes_[i].empty() || plan_.kernels[i].ask != Ask::type) continue;
    const std::string answer = unit_.lowered_name(probes_[i]);
    try {
      read_kernel_probe(answer);
    } catch (const InvalidArgument&) {
      if (is_probe_answer(answer)) names.insert(plan_.kernels[i].name);
    }
  }
  return names;
}

std::vector<std::string> CompileAttempt::unseen_kernels() const {
  const std::vector<std::string> entries = ptx_entries(unit_.ptx());
  std::vector<std::string> names;
  if (entries.size() == plan_.kernels.size()) return names;
  std::set<std::string> known;
  for (const PlannedKernel& kernel : plan_.kernels) known.insert(unit_.lowered_name(kernel.name));
  for (const std::string& entry : entries) {
    if (!known.contains(entry)) names.push_back(readable_kernel(entry));
  }
  return names;
}

std::vector<std::string> CompileAttempt::unseen_variables() const {
  std::set<std::string> known;
  for (const PlannedSymbol& symbol : plan_.symbols) known.insert(symbol.name);
  std::vector<std::string> names;
  for (const std::string& lowered : ptx_variables(unit_.ptx())) {
    std::string name = readable_variable(lowered);
    if (!name.empty() && !known.contains(name)) names.push_back(std::move(name));
  }
  return names;
}

ObjectCode CompileAttempt::object_code() const {
  const std::string ptx = with_files_renamed(unit_.ptx(), [this](const std::string& file) {
    return user_name(name_as_given(file, request_.texts));
  });
  ObjectCode code;
  code.kind = request_.target.kind;
  code.arch = request_.target.label;
  code.kernels = signatures(ptx);
  if (code.kind == CodeKind::ptx) {
    code.code = ptx;
    if (request_.target.nvrtc_arch.starts_with("sm_")) code.resource_cubin = unit_.cubin();
  } else {
    code.code = unit_.cubin();
  }
  add_symbols(code, ptx);
  code.log = user_log();
  code.diagnostics = user_diagnostics();
  code.nvrtc_version = nvrtc_.version();
  auto trace = std::make_shared<CompileTrace>();
  trace->options = options_;
  trace->minimal = plan_.minimal;
  trace->pch = pch_.use;
  trace->nvrtc_ms = nvrtc_ms_;
  code.trace = std::move(trace);
  return code;
}

std::vector<KernelSignature> CompileAttempt::signatures(const std::string& ptx) const {
  std::vector<KernelSignature> result;
  for (std::size_t i = 0; i < plan_.kernels.size(); ++i) {
    const PlannedKernel& kernel = plan_.kernels[i];
    if (!defines(kernel, ptx)) continue;
    try {
      result.push_back(signature(i, ptx));
    } catch (CompileError& error) {
      // A declared kernel that was not requested by name must not block the others.
      if (!kernel.is_required && plan_.kernels.size() > 1) continue;
      for (Diagnostic& diagnostic : error.diagnostics) diagnostic.file = request_.source.name;
      shift_lines(error.diagnostics, request_.source.name, request_.source.first_line);
      throw CompileError(summarize(error.diagnostics, request_.source.name, {}), error.diagnostics,
                         user_log(), request_.source.text, options_);
    }
  }
  return result;
}

/// Whether the kernel has a body. Throws NameNotFound where one without was asked for.
bool CompileAttempt::defines(const PlannedKernel& kernel, const std::string& ptx) const {
  const std::string lowered = unit_.lowered_name(kernel.name);
  if (ptx.find(".entry " + lowered + "(") != std::string::npos) return true;
  if (!kernel.is_required) return false;
  const KernelDeclaration* declared = find_declaration(kernel.name, request_.declared.kernels);
  const std::string place = declared == nullptr
                                ? std::string()
                                : format(":{}", declared->line + request_.source.first_line - 1);
  throw NameNotFound(
      format("{} is declared in {}{} but not defined there: a kernel needs its body "
             "in the same source or in a header that it includes",
             kernel.name, request_.source.name, place));
}

KernelSignature CompileAttempt::signature(std::size_t index, const std::string& ptx) const {
  const PlannedKernel& kernel = plan_.kernels[index];
  const KernelDeclaration* declaration = find_declaration(kernel.name, request_.declared.kernels);
  const std::string lowered = unit_.lowered_name(kernel.name);
  if (!probes_[index].empty()) {
    try {
      return signature_from_probe(kernel.name, lowered, unit_.lowered_name(probes_[index]),
                                  declaration, plan_.members);
    } catch (const InvalidArgument&) {
      // A type unknown to the reader of mangled names: sizes are still available.
    }
  }
  KernelSignature told = signature_from_code(kernel.name, lowered, ptx, declaration);
  const bool is_open =
      std::any_of(told.parameters.begin(), told.parameters.end(),
                  [](const Parameter& p) { return p.kind == ParameterKind::untyped; });
  if (is_open) {
    log(LogLevel::warning,
        "{}: the compiler does not tell the types of {}, so launches check only the sizes of "
        "arguments given as bytes; declare plain types for full checks",
        request_.source.name, told.to_string());
  }
  return told;
}

void CompileAttempt::add_symbols(ObjectCode& code, const std::string& ptx) const {
  for (std::size_t i = 0; i < plan_.symbols.size(); ++i) {
    const PlannedSymbol& symbol = plan_.symbols[i];
    const std::string& name = symbol.name;
    const std::string lowered =
        symbol.is_managed ? lowered_variable(name) : unit_.lowered_name("&" + name);
    if (symbol.is_managed && !defines_variable(ptx, lowered)) continue;
    code.symbols[name] = lowered;
    const std::string& probe = probes_[plan_.kernels.size() + i];
    if (probe.empty()) continue;
    try {
      code.symbol_types[name] = read_symbol_probe(unit_.lowered_name(probe), plan_.members);
    } catch (const InvalidArgument&) {
      // As above: the symbol can still be used by its address and size.
    }
  }
}

AttemptErrors CompileAttempt::errors() const {
  AttemptErrors result;
  result.in_pch = is_pch_at_fault_;
  bool any = false;
  for (const LogMessage& message : messages_) {
    if (message.diagnostic.severity != Severity::error) continue;
    any = true;
    if (message.diagnostic.message.find("-default-device") != std::string::npos) {
      result.host_code = true;
    }
    const std::string& expression = message.name_expression;
    const std::string& file = message.diagnostic.file;
    result.in_preamble = result.in_preamble || file == kPreambleFile;
    if (file != kNameMapFile && file != kProbeFile) {
      // A template of the user may hold an error that only the probe reveals.
      const bool by_probe =
          message.diagnostic.message.find("kernwright_probe_::") != std::string::npos;
      (by_probe ? result.in_probe : result.in_source) = true;
      continue;
    }
    const auto asked = std::find(probes_.begin(), probes_.end(), expression);
    const bool is_probe = !expression.empty() && asked != probes_.end();
    const auto question = question_on_line(message.diagnostic.line);
    if (is_probe) {
      result.unanswered.insert(static_cast<std::size_t>(asked - probes_.begin()));
    } else if (file == kProbeFile) {
      result.in_probe = result.in_probe || !question;
      if (question) result.unanswered.insert(*question);
    } else {
      result.names.insert(expression);
      if (expression.starts_with("&")) result.names.insert(expression.substr(1));
    }
  }
  if (!any && !result.in_pch) result.in_source = true;
  return result;
}

std::string CompileAttempt::message_about(const std::string& name) const {
  for (const LogMessage& message : messages_) {
    const std::string& text = message.diagnostic.message;
    const bool about = message.diagnostic.severity == Severity::error &&
                       message.name_expression == name && !text.starts_with("Error in parsing");
    if (about) return text.substr(0, text.find('\n'));
  }
  return {};
}

std::vector<Diagnostic> CompileAttempt::user_diagnostics() const {
  std::vector<Diagnostic> result;
  for (const LogMessage& message : messages_) {
    const std::string& file = message.diagnostic.file;
    if (file == kProbeFile || file == kNameMapFile) continue;
    result.push_back(message.diagnostic);
  }
  if (std::any_of(result.begin(), result.end(), is_error)) {
    add_hints(result, request_.header_folders, macro_names(request_.options, source_));
  }
  shift_lines(result, request_.source.name, request_.source.first_line);
  return result;
}

std::string CompileAttempt::user_log() const {
  std::string log = replace_all(log_, "\"" + program_path_ + "\"", quoted(request_.source.name));
  // Behind includes the compiler names the program itself.
  log = replace_all(std::move(log), program_path_ + "(", request_.source.name + "(");
  return shifted_log(user_name(std::move(log)), request_.source.name, request_.source.first_line);
}

void CompileAttempt::throw_compile_error(const CompileDeadline& deadline) {
  locate_assembly_errors(nvrtc_,
                         {assembled_text(request_, plan_, std::nullopt), program_path_, options_},
                         request_.texts, deadline, messages_);
  for (LogMessage& message : messages_) {
    message.diagnostic.file = file_of_user(message.diagnostic.file);
  }
  const std::vector<Diagnostic> diagnostics = user_diagnostics();
  const std::string log = user_log();
  throw CompileError(summarize(diagnostics, request_.source.name, log), diagnostics, log,
                     request_.source.text, options_);
}

}  // namespace kernwright
