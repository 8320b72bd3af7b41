// Assembles the text for NVRTC, compiles it and reads what came out.
#include "jit/compile_attempt.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/errors.h"
#include "base/format.h"
#include "jit/probe.h"
#include "jit/signature_builder.h"
#include "jit/source_lexer.h"

namespace kernwright {
namespace {

/// NVRTC looks for quoted includes in the folder of the program's name. Nothing can lie below a
/// device, so a source that is only a string sees no file of the current folder.
constexpr std::string_view kNoFolder = "/dev/null";

std::string program_path(const Source& source) {
  std::string name = std::filesystem::path(source.name).filename().string();
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

std::string assembled_text(const CompileRequest& request, const CompilePlan& plan) {
  std::string text = "#line 1 " + quoted(request.source.name) + "\n" + request.source.text;
  if (plan.probe) text += probe_text();
  return text;
}

std::vector<std::string> nvrtc_options(const CompileRequest& request, const CompilePlan& plan) {
  std::vector<std::string> options =
      to_nvrtc_options(request.options, request.target.nvrtc_arch, request.header_folders);
  if (plan.default_device) options.push_back("--device-as-default-execution-space");
  if (plan.minimal) options.push_back("--minimal");
  return options;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// NVRTC writes the current folder before a relative name in `.file` lines. The same source must
/// give the same PTX wherever the process stands.
std::string without_current_folder(std::string ptx, const std::string& name) {
  if (std::filesystem::path(name).is_absolute()) return ptx;
  const std::string ending = "/" + name + "\"";
  for (auto at = ptx.find("\t.file\t"); at != std::string::npos;
       at = ptx.find("\t.file\t", at + 1)) {
    const auto end = ptx.find('\n', at);
    const auto open = ptx.find('"', at);
    const auto close = ptx.find(ending, at);
    if (open < end && close < end && open < close) ptx.replace(open + 1, close - open, "");
  }
  return ptx;
}

bool is_probe_expression(const std::string& expression) {
  return expression.starts_with("kernwright_probe_::");
}

}  // namespace

CompilePlan first_plan(const CompileRequest& request) {
  constexpr std::array<std::string_view, 4> kLeftOut{"cuda", "tex", "surf", "CU"};
  const TokenizedSource source = tokenize(request.source.text);
  const auto may_be_left_out = [&](const Token& token) {
    return token.kind == TokenKind::identifier &&
           std::any_of(kLeftOut.begin(), kLeftOut.end(),
                       [&](std::string_view prefix) { return token.text.starts_with(prefix); });
  };
  CompilePlan plan;
  plan.default_device = source.includes.empty();
  plan.minimal = request.options.minimal == Tristate::automatic && request.options.extra.empty() &&
                 source.includes.empty() &&
                 std::none_of(source.tokens.begin(), source.tokens.end(), may_be_left_out);
  return plan;
}

CompileAttempt::CompileAttempt(const LoadedNvrtc& nvrtc, const CompileRequest& request,
                               const CompilePlan& plan)
    : nvrtc_(nvrtc),
      request_(request),
      plan_(plan),
      program_path_(program_path(request.source)),
      options_(nvrtc_options(request, plan)),
      unit_(nvrtc, assembled_text(request, plan), program_path_, request.options.headers) {
  for (const PlannedKernel& kernel : plan.kernels) {
    unit_.add_name(kernel.name);
    if (plan.probe) unit_.add_name(kernel_probe(kernel.name));
  }
  for (const std::string& symbol : plan.symbols) {
    unit_.add_name("&" + symbol);
    if (plan.probe) unit_.add_name(symbol_probe(symbol));
  }
}

bool CompileAttempt::compile(const CompileDeadline& deadline) {
  const bool compiled = unit_.compile(options_, deadline);
  messages_ = parse_compile_log(unit_.log());
  return compiled;
}

ObjectCode CompileAttempt::object_code() const {
  const std::string ptx = without_current_folder(unit_.ptx(), request_.source.name);
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
  add_symbols(code);
  code.log = user_log();
  code.diagnostics = user_diagnostics();
  code.nvrtc_version = nvrtc_.version();
  return code;
}

std::vector<KernelSignature> CompileAttempt::signatures(const std::string& ptx) const {
  std::vector<KernelSignature> result;
  for (const PlannedKernel& kernel : plan_.kernels) {
    try {
      result.push_back(signature(kernel, ptx));
    } catch (CompileError& error) {
      // A kernel that nobody asked for by name does not stand in the way of the others.
      if (!kernel.is_required && plan_.kernels.size() > 1) continue;
      for (Diagnostic& diagnostic : error.diagnostics) diagnostic.file = request_.source.name;
      shift_lines(error.diagnostics, request_.source.name, request_.source.first_line);
      throw CompileError(summarize(error.diagnostics, request_.source.name, {}), error.diagnostics,
                         user_log(), request_.source.text, options_);
    }
  }
  return result;
}

KernelSignature CompileAttempt::signature(const PlannedKernel& kernel,
                                          const std::string& ptx) const {
  const KernelDeclaration* declaration = find_declaration(kernel.name, request_.declared.kernels);
  const std::string lowered = unit_.lowered_name(kernel.name);
  if (plan_.probe) {
    try {
      return signature_from_probe(kernel.name, lowered,
                                  unit_.lowered_name(kernel_probe(kernel.name)), declaration);
    } catch (const InvalidArgument&) {
      // A type that the reader of mangled names does not know: sizes are still to be had.
    }
  }
  return signature_from_ptx(kernel.name, lowered, ptx, declaration);
}

void CompileAttempt::add_symbols(ObjectCode& code) const {
  for (const std::string& symbol : plan_.symbols) {
    code.symbols[symbol] = unit_.lowered_name("&" + symbol);
    if (!plan_.probe) continue;
    try {
      code.symbol_types[symbol] = read_symbol_probe(unit_.lowered_name(symbol_probe(symbol)));
    } catch (const InvalidArgument&) {
      // As above: the symbol can still be used by its address and size.
    }
  }
}

AttemptErrors CompileAttempt::errors() const {
  AttemptErrors result;
  bool any = false;
  for (const LogMessage& message : messages_) {
    if (message.diagnostic.severity != Severity::error) continue;
    any = true;
    if (message.diagnostic.message.find("-default-device") != std::string::npos) {
      result.host_code = true;
    }
    const std::string& expression = message.name_expression;
    if (message.diagnostic.file == kNameMapFile) {
      if (is_probe_expression(expression)) {
        result.in_probe = true;
      } else {
        result.names.insert(expression);
        if (expression.starts_with("&")) result.names.insert(expression.substr(1));
      }
    } else if (message.diagnostic.file == kProbeFile) {
      result.in_probe = true;
    } else {
      result.in_source = true;
    }
  }
  if (!any) result.in_source = true;
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
  add_hints(result);
  shift_lines(result, request_.source.name, request_.source.first_line);
  return result;
}

std::string CompileAttempt::user_log() const {
  return replace_all(unit_.log(), "\"" + program_path_ + "\"", quoted(request_.source.name));
}

void CompileAttempt::throw_compile_error() const {
  const std::vector<Diagnostic> diagnostics = user_diagnostics();
  const std::string log = user_log();
  throw CompileError(summarize(diagnostics, request_.source.name, log), diagnostics, log,
                     request_.source.text, options_);
}

}  // namespace kernwright
