// The sequence of NVRTC compiles for object code or for one clear error.
#include "jit/compile/compiler.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>

#include "base/errors.h"
#include "base/format.h"
#include "base/nearest_name.h"
#include "base/whole_file.h"
#include "jit/compile/compile_attempt.h"
#include "jit/compile/compile_trace.h"
#include "jit/compile/compile_wait.h"
#include "jit/signature/cuda_types.h"
#include "jit/signature/signature_builder.h"
#include "jit/source/declared_kernels.h"
#include "jit/source/include_closure.h"
#include "jit/source/macro_definitions.h"
#include "jit/source/member_names.h"
#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

/// Enough for: without precompiled headers, with macros behind the compiler's preamble, without
/// --minimal, without names behind a false #if, types asked for in each way, without the probe,
/// with it once more, and without it in the end.
constexpr int kMaxAttempts = 12;
constexpr std::size_t kMaxNames = 4096;

void check_names(const std::vector<std::string>& names) {
  if (names.size() > kMaxNames) {
    throw InvalidArgument(
        format("{} kernel names are given; the limit is {}", names.size(), kMaxNames));
  }
  for (const std::string& name : names) {
    if (name.find_first_not_of(" \t") == std::string::npos) {
      throw InvalidArgument("a kernel name is empty");
    }
    const auto at = name.find_first_of(std::string_view("\0\n\r", 3));
    if (at == std::string::npos) continue;
    throw InvalidArgument(
        format("a kernel name has a {} at offset {}", name[at] == '\0' ? "NUL" : "line break", at));
  }
}

/// Candidates for the names of struct members: from the text, whose tokens are `source`, and from
/// all included headers of the user.
std::vector<std::string> member_names_of(const CompileRequest& request,
                                         const TokenizedSource& source) {
  MemberNames names;
  names.add(request.texts.text, source);
  for (const auto& [name, text] : request.options.headers) names.add(text);
  for (const IncludedFile& file : request.included.files) {
    if (const auto text = read_whole_file(file.path)) names.add(*text);
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

/// The step after a failed attempt.
enum class Next { again, give_up };

/// One compile() call: the attempts so far and their results.
class Session {
 public:
  Session(const LoadedNvrtc& nvrtc, const CompileRequest& request, const CompileDeadline& deadline)
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

  ObjectCode run() {
    for (int i = 0; i < kMaxAttempts; ++i) {
      CompileAttempt attempt(nvrtc_, request_, plan_, tokens_);
      if (attempt.compile(deadline_)) {
        const bool may_retry = i + 1 < kMaxAttempts;
        if (may_retry &&
            (ask_in_full(attempt.misjudged_kernels()) || ask_again() || ask_for_unseen(attempt))) {
          lost_ms_ += attempt.nvrtc_ms();
          continue;
        }
        if (minimal_failed_) remember_no_minimal(nvrtc_, tokens_);
        return with_history(attempt.object_code(), i + 1);
      }
      lost_ms_ += attempt.nvrtc_ms();
      if (learn(attempt) == Next::give_up || i + 1 == kMaxAttempts) {
        attempt.throw_compile_error(deadline_);
      }
    }
    throw Error("a compile did not come to an end");
  }

 private:
  ObjectCode with_history(ObjectCode code, int attempts) const {
    auto trace = std::make_shared<CompileTrace>(*code.trace);
    trace->attempts = attempts;
    trace->nvrtc_ms += lost_ms_;
    trace->is_provisional = blamed_text_ && !plan_.probe;
    code.trace = std::move(trace);
    return code;
  }

  void add_kernel(const std::string& name, bool required) {
    const bool known = std::any_of(plan_.kernels.begin(), plan_.kernels.end(),
                                   [&](const PlannedKernel& k) { return k.name == name; });
    if (known) return;
    const KernelDeclaration* declared = find_declaration(name, request_.declared.kernels);
    const bool is_plain = declared != nullptr && !declared->is_template && declared->name == name &&
                          std::all_of(declared->parameter_types.begin(),
                                      declared->parameter_types.end(), spells_known_layout);
    plan_.kernels.push_back({name, required, is_plain ? Ask::type : first_ask_});
  }

  /// Finds possible names of members. Structs without a name may be types of members. If some have
  /// members, the form for such types comes first: it saves attempts.
  void find_members() {
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

  /// The next form to ask in.
  Ask after(Ask ask) const {
    const Ask second = first_ask_ == Ask::probe ? Ask::question : Ask::probe;
    return ask == Ask::type ? first_ask_ : ask == first_ask_ ? second : Ask::nothing;
  }

  bool asks_in_full() const {
    return !plan_.symbols.empty() ||
           std::any_of(plan_.kernels.begin(), plan_.kernels.end(),
                       [](const PlannedKernel& k) { return k.ask != Ask::type; });
  }

  /// Whether another attempt is needed for the types of the kernels with these names.
  bool ask_in_full(const std::set<std::string>& names) {
    for (PlannedKernel& kernel : plan_.kernels) {
      if (names.contains(kernel.name)) kernel.ask = first_ask_;
    }
    if (!names.empty() && plan_.members.empty()) find_members();
    return !names.empty();
  }

  /// Whether the code has kernels and variables not visible in the text: made by a macro, from a
  /// header, instances of templates. Host constants are no variables of a module.
  bool ask_for_unseen(const CompileAttempt& attempt) {
    if (!request_.with_declared || asked_for_unseen_) return false;
    asked_for_unseen_ = true;
    const std::size_t before = plan_.kernels.size() + plan_.symbols.size();
    for (const std::string& name : attempt.unseen_kernels()) {
      if (plan_.kernels.size() < kMaxNames) add_kernel(name, false);
    }
    for (const std::string& name : attempt.unseen_variables()) {
      const bool is_constant = request_.declared.constants.contains(name);
      if (!is_constant && plan_.symbols.size() < kMaxNames) {
        plan_.symbols.push_back({name, false, first_ask_});
      }
    }
    return plan_.kernels.size() + plan_.symbols.size() > before;
  }

  /// Whether to ask for the types once more: an attempt with questions failed in the text, one
  /// without them compiled. Another cause (lack of memory, for instance) may be gone.
  bool ask_again() {
    if (!blamed_text_ || asked_again_) return false;
    plan_.probe = asked_again_ = true;
    return true;
  }

  Next learn(const CompileAttempt& attempt) {
    const AttemptErrors errors = attempt.errors();
    if (errors.in_pch) return Next::again;  // which makes none
    if (errors.in_preamble && !plan_.defines_in_text &&
        !macro_definitions(request_.options).empty()) {
      plan_.defines_in_text = true;
      return Next::again;
    }
    if (plan_.minimal) {
      plan_.minimal = false;  // the text may use what --minimal leaves out
      minimal_failed_ = true;
      return Next::again;
    }
    if (errors.host_code && !plan_.default_device) {
      plan_.default_device = true;
      return Next::again;
    }
    if (errors.in_source) {
      if (!plan_.probe) return Next::give_up;
      plan_.probe = false;  // for a log that speaks of the user's text alone
      blamed_text_ = true;
      return Next::again;
    }
    if (!errors.names.empty() && drop(errors.names, attempt)) return Next::again;
    return ask_otherwise(errors) ? Next::again : Next::give_up;
  }

  /// Asks in another way for the names without an answer, or for all if the compiler does not name
  /// them. False when none is asked any more.
  bool ask_otherwise(const AttemptErrors& errors) {
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

  /// Leaves out names unknown to the compiler. Throws NameNotFound for a required one.
  bool drop(const std::set<std::string>& names, const CompileAttempt& attempt) {
    for (const PlannedKernel& kernel : plan_.kernels) {
      if (kernel.is_required && names.contains(kernel.name)) unknown_name(kernel.name, attempt);
    }
    const auto kernels = std::erase_if(
        plan_.kernels, [&](const PlannedKernel& k) { return names.contains(k.name); });
    const auto symbols = std::erase_if(
        plan_.symbols, [&](const PlannedSymbol& s) { return names.contains(s.name); });
    return kernels + symbols > 0;
  }

  /// All existing names: from the text, or from the compiler if macros and headers may make
  /// kernels.
  std::vector<std::string> known_names() const {
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

  [[noreturn]] void unknown_name(const std::string& name, const CompileAttempt& attempt) const {
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

  const LoadedNvrtc& nvrtc_;
  const CompileRequest& request_;
  const CompileDeadline& deadline_;
  const TokenizedSource tokens_;  ///< of the text that the compiler reads
  CompilePlan plan_;
  Ask first_ask_ = Ask::probe;  ///< of what Ask::type does not do for
  bool minimal_failed_ = false;
  bool blamed_text_ = false;  ///< for an attempt with the probe
  bool asked_for_unseen_ = false;
  bool asked_again_ = false;  ///< with the probe, after one without it compiled
  double lost_ms_ = 0;        ///< in attempts that failed
};

}  // namespace

void validate(const CompileRequest& request) {
  validate(request.source);
  validate(request.options);
  check_include_dirs(request.options);
  check_names(request.names);
}

ObjectCode Compiler::compile(const CompileRequest& request) const {
  validate(request);
  return run(request);
}

ObjectCode Compiler::compile_measured(const CompileRequest& request,
                                      const std::string& time_file) const {
  validate(request);
  CompileRequest measured = request;
  std::vector<std::string>& extra = measured.options.extra;
  extra.push_back("--ptxas-options=-v");
  if (!time_file.empty()) extra.push_back("--time=" + time_file);
  return run(measured);
}

ObjectCode Compiler::run(const CompileRequest& given) const {
  const auto begin = std::chrono::steady_clock::now();
  CompileRequest request = given;
  request.included = include_closure(request.source, request.options);
  request.texts = compiler_texts(request.source, request.options, request.included);
  const CompileDeadline deadline(current_wait_limits().within(request.options.timeout),
                                 format("compiling {}", request.source.name));
  ObjectCode code = Session(nvrtc_, request, deadline).run();
  code.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return code;
}

}  // namespace kernwright
