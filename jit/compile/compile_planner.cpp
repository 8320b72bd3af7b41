// What each attempt of a compile asks, by the results of those before it.
#include "jit/compile/compile_planner.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/errors.h"
#include "base/format.h"
#include "base/nearest_name.h"
#include "base/whole_file.h"
#include "jit/compile/compile_trace.h"
#include "jit/signature/cuda_types.h"
#include "jit/source/declared_kernels.h"
#include "jit/source/macro_definitions.h"
#include "jit/source/member_names.h"

namespace kernwright {
namespace {

constexpr std::string_view kOwnHeaders = "kernwright/";
constexpr std::string_view kOwnNamespace = "kernwright::";

/// Candidates for the names of struct members: from the text, whose tokens are `source`, from all
/// included headers of the user, and from those of the library's headers that one of these names.
std::vector<std::string> member_names_of(const CompileRequest& request,
                                         const TokenizedSource& source) {
  MemberNames names;
  names.add(request.texts.text, source);
  std::string texts = request.texts.text;
  const auto add = [&](const std::string& text) {
    names.add(text);
    texts += text;
  };
  for (const auto& [name, text] : request.options.headers) {
    if (!name.starts_with(kOwnHeaders)) add(text);
  }
  for (const IncludedFile& file : request.included.files) {
    if (const auto text = read_whole_file(file.path)) add(*text);
  }
  for (const auto& [name, text] : request.options.headers) {
    if (name.starts_with(kOwnHeaders) && texts.find(name) != texts.npos) names.add(text);
  }
  return names.take();
}

std::vector<std::string> declared_names(const CompileRequest& request) {
  std::vector<std::string> names;
  for (const KernelDeclaration& kernel : request.declared.kernels) names.push_back(kernel.name);
  return names;
}

/// Names of templates in the text and in all included headers of the user.
std::vector<std::string> template_names(const CompileRequest& request) {
  std::vector<std::string> names;
  const auto look_into = [&](const std::string& text) {
    for (KernelDeclaration& kernel : find_kernels(text)) {
      if (kernel.is_template) names.push_back(std::move(kernel.name));
    }
  };
  look_into(request.source.text);
  for (const auto& [name, text] : request.options.headers) look_into(text);
  for (const IncludedFile& file : request.included.files) {
    if (const auto text = read_whole_file(file.path)) look_into(*text);
  }
  return names;
}

}  // namespace

CompilePlanner::CompilePlanner(const LoadedNvrtc& nvrtc, const CompileRequest& request,
                               const CompileDeadline& deadline)
    : nvrtc_(nvrtc),
      request_(request),
      deadline_(deadline),
      tokens_(tokenize(request.texts.text)),
      plan_(first_plan(nvrtc, request, tokens_)) {
  for (const std::string& name : request.names) add_kernel(name, true);
  for (const KernelDeclaration& kernel : request.declared.kernels) {
    if (request.with_declared && !kernel.is_template) add_kernel(kernel.name, false);
  }
  for (const SymbolDeclaration& symbol : request.declared.symbols) {
    plan_.symbols.push_back({symbol.name, symbol.is_managed});
  }
  if (asks_in_full()) find_members();
}

bool CompilePlanner::asks_more(const CompileAttempt& attempt) {
  return ask_in_full(attempt.misjudged_kernels()) || ask_again() || ask_for_unseen(attempt);
}

ObjectCode CompilePlanner::finish(const CompileAttempt& attempt, int attempts, double nvrtc_ms) {
  if (minimal_failed_) remember_no_minimal(nvrtc_, tokens_);
  ObjectCode code = attempt.object_code();
  auto trace = std::make_shared<CompileTrace>(*code.trace);
  trace->attempts = attempts;
  trace->nvrtc_ms = nvrtc_ms;
  trace->is_provisional = blamed_text_ && !plan_.probe;
  code.trace = std::move(trace);
  return code;
}

void CompilePlanner::add_kernel(const std::string& name, bool required) {
  const bool known = std::any_of(plan_.kernels.begin(), plan_.kernels.end(),
                                 [&](const PlannedKernel& k) { return k.name == name; });
  if (known) return;
  const KernelDeclaration* declared = find_declaration(name, request_.declared.kernels);
  const bool is_plain = declared != nullptr && !declared->is_template && declared->name == name &&
                        std::all_of(declared->parameter_types.begin(),
                                    declared->parameter_types.end(), spells_known_layout);
  plan_.kernels.push_back({name, required, is_plain ? Ask::type : first_ask_});
}

void CompilePlanner::find_members() {
  if (!request_.with_members) return;
  plan_.members = member_names_of(request_, tokens_);
  const bool any_nameless =
      std::any_of(plan_.members.begin(), plan_.members.end(),
                  [](const std::string& name) { return name.starts_with("::"); });
  if (!any_nameless || first_ask_ == Ask::question) return;
  first_ask_ = Ask::question;
  for (PlannedKernel& kernel : plan_.kernels) {
    if (kernel.ask == Ask::probe) kernel.ask = Ask::question;
  }
  for (PlannedSymbol& symbol : plan_.symbols) symbol.ask = Ask::question;
}

Ask CompilePlanner::after(Ask ask) const {
  const Ask second = first_ask_ == Ask::probe ? Ask::question : Ask::probe;
  return ask == Ask::type ? first_ask_ : ask == first_ask_ ? second : Ask::nothing;
}

bool CompilePlanner::asks_in_full() const {
  return !plan_.symbols.empty() ||
         std::any_of(plan_.kernels.begin(), plan_.kernels.end(),
                     [](const PlannedKernel& k) { return k.ask != Ask::type; });
}

bool CompilePlanner::ask_in_full(const std::set<std::string>& names) {
  for (PlannedKernel& kernel : plan_.kernels) {
    if (names.contains(kernel.name)) kernel.ask = first_ask_;
  }
  if (!names.empty() && plan_.members.empty()) find_members();
  return !names.empty();
}

bool CompilePlanner::ask_for_unseen(const CompileAttempt& attempt) {
  if (!request_.with_declared || asked_for_unseen_) return false;
  asked_for_unseen_ = true;
  const std::size_t before = plan_.kernels.size() + plan_.symbols.size();
  for (const std::string& name : attempt.unseen_kernels()) {
    if (plan_.kernels.size() < kMaxPlannedNames) add_kernel(name, false);
  }
  for (const std::string& name : attempt.unseen_variables()) {
    const bool is_constant =
        request_.declared.constants.contains(name) || name.starts_with(kOwnNamespace);
    if (!is_constant && plan_.symbols.size() < kMaxPlannedNames) {
      plan_.symbols.push_back({name, false, first_ask_});
    }
  }
  return plan_.kernels.size() + plan_.symbols.size() > before;
}

bool CompilePlanner::ask_again() {
  if (!blamed_text_ || asked_again_) return false;
  plan_.probe = asked_again_ = true;
  return true;
}

bool CompilePlanner::learn(const CompileAttempt& attempt) {
  const AttemptErrors errors = attempt.errors();
  if (errors.in_pch) return true;  // the next attempt makes no precompiled header
  if (errors.in_preamble && !plan_.defines_in_text &&
      !macro_definitions(request_.options).empty()) {
    plan_.defines_in_text = true;
    return true;
  }
  if (plan_.minimal) {
    plan_.minimal = false;  // the text may use what --minimal leaves out
    minimal_failed_ = true;
    return true;
  }
  if (errors.host_code && !plan_.default_device) {
    plan_.default_device = true;
    return true;
  }
  if (errors.in_source) {
    if (!plan_.probe) return false;
    plan_.probe = false;  // for a log that speaks of the user's text alone
    blamed_text_ = true;
    return true;
  }
  if (!errors.names.empty() && drop(errors.names, attempt)) return true;
  return ask_otherwise(errors);
}

bool CompilePlanner::ask_otherwise(const AttemptErrors& errors) {
  if (errors.unanswered.empty() && errors.in_probe && !plan_.members.empty()) {
    plan_.members.clear();  // one of the names may be a word or a macro
    return true;
  }
  std::size_t index = 0;
  bool any = false;
  bool changed = false;
  const auto next = [&](Ask& ask) {
    const bool is_told = !errors.unanswered.empty();
    const bool is_meant = is_told ? errors.unanswered.contains(index) : errors.in_probe;
    ++index;
    if (is_meant && ask != Ask::nothing) {
      ask = after(ask);
      changed = true;
    }
    any = any || ask != Ask::nothing;
  };
  for (PlannedKernel& kernel : plan_.kernels) next(kernel.ask);
  for (PlannedSymbol& symbol : plan_.symbols) next(symbol.ask);
  // Nothing left to ask, or nothing from the beginning: templates may still be in the way.
  changed = changed || (plan_.probe && errors.in_probe);
  plan_.probe = plan_.probe && any;
  return changed;
}

bool CompilePlanner::drop(const std::set<std::string>& names, const CompileAttempt& attempt) {
  for (const PlannedKernel& kernel : plan_.kernels) {
    if (kernel.is_required && names.contains(kernel.name)) unknown_name(kernel.name, attempt);
  }
  const auto kernels =
      std::erase_if(plan_.kernels, [&](const PlannedKernel& k) { return names.contains(k.name); });
  const auto symbols =
      std::erase_if(plan_.symbols, [&](const PlannedSymbol& s) { return names.contains(s.name); });
  return kernels + symbols > 0;
}

std::vector<std::string> CompilePlanner::known_names() const {
  std::vector<std::string> names = declared_names(request_);
  if (declares_all_kernels(request_.source, request_.options, request_.declared)) return names;
  CompilePlan plan = plan_;
  plan.kernels.clear();
  plan.symbols.clear();
  plan.probe = false;
  CompileAttempt attempt(nvrtc_, request_, plan, tokens_);
  if (!attempt.compile(deadline_)) return names;
  names = template_names(request_);
  for (const std::string& name : attempt.unseen_kernels()) names.push_back(name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

void CompilePlanner::unknown_name(const std::string& name, const CompileAttempt& attempt) const {
  const std::string& source = request_.source.name;
  const auto& kernels = request_.declared.kernels;
  const auto declared =
      std::find_if(kernels.begin(), kernels.end(), [&](const auto& k) { return k.name == name; });
  const std::string said = attempt.message_about(name);
  // A parameter of type auto makes a template too.
  const bool is_open = said.find("which instance of function template") != std::string::npos;
  if (name.find('<') == std::string::npos &&
      ((declared != kernels.end() && declared->is_template) || is_open)) {
    throw NameNotFound(
        format("{} in {} is a template: name an instantiation of it, for example {}<float>", name,
               source, name));
  }
  if (is_open) {
    throw NameNotFound(format(
        "{} in {} has no such instantiation: the number or kinds of its template arguments do "
        "not fit, or they do not satisfy its constraints (concept, requires, enable_if)",
        name, source));
  }
  if (said.find("overloaded") != std::string::npos) {
    throw NameNotFound(
        format("{} in {} is overloaded: name one by its type, for example (void (*)(float*)){}",
               name, source, name));
  }
  for (const SymbolDeclaration& symbol : request_.declared.symbols) {
    if (symbol.name != name) continue;
    throw NameNotFound(format("{} in {} is a variable, no __global__ function{}", name, source,
                              describe_names(name, known_names())));
  }
  if (declared != kernels.end()) {
    throw NameNotFound(
        format("{} stands at {}:{} but the compiler does not see it there (behind an #if?): {}",
               name, source, declared->line + request_.source.first_line - 1, said));
  }
  throw NameNotFound(format("no kernel {} in {}{}{}", name, source,
                            said.empty() ? "" : " (" + said + ")",
                            describe_names(name, known_names())));
}

}  // namespace kernwright
