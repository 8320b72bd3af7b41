// Walks over the declarations of a source text.
#include "jit/source/kernel_scanner.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>

#include "jit/source/parameter_scanner.h"
#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

enum class ScopeKind { named, transparent, extern_c, body };

struct Scope {
  ScopeKind kind = ScopeKind::body;
  std::string name;
};

bool makes_symbol(std::string_view word) {
  return word == "__device__" || word == "__constant__" || word == "__managed__";
}

/// Of a declaration: no walk to the end of the text for each.
constexpr std::size_t kMaxConstantTokens = 4096;

std::size_t count_words(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

/// Whether a line begins with #if or its kin.
bool has_conditional(std::string_view text) {
  for (auto at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1)) {
    const auto word = text.find_first_not_of(" \t", at + 1);
    if (word != std::string_view::npos && text.substr(word, 2) == "if") return true;
  }
  return false;
}

bool includes_something(const Directive& directive) {
  const auto word = directive.text.find_first_not_of(" \t\f\v", 1);
  return word != std::string::npos && directive.text.compare(word, 7, "include") == 0;
}

class Scanner {
 public:
  explicit Scanner(std::string_view text)
      : text_(text), source_(tokenize(text)), tokens_(source_.tokens) {}

  ScannedSource run() {
    while (at_ < tokens_.size()) step();
    const bool quoted = std::any_of(source_.includes.begin(), source_.includes.end(),
                                    [](const IncludeDirective& i) { return i.quoted; });
    const auto included = static_cast<std::size_t>(
        std::count_if(source_.directives.begin(), source_.directives.end(), includes_something));
    const bool computed = included > source_.includes.size();
    result_.is_whole = !quoted && !computed && !has_conditional(text_) &&
                       seen_ == count_words(text_, "__global__") &&
                       text_.find("__attribute__") == std::string_view::npos;
    return std::move(result_);
  }

 private:
  bool is(std::size_t index, std::string_view text) const {
    return index < tokens_.size() && tokens_[index].kind != TokenKind::string &&
           tokens_[index].text == text;
  }
  bool is_identifier(std::size_t index) const {
    return index < tokens_.size() && tokens_[index].kind == TokenKind::identifier;
  }

  std::size_t behind_bracket(std::size_t index) const {
    return kernwright::behind_bracket(tokens_, index);
  }
  std::size_t behind_angle(std::size_t index) const {
    return kernwright::behind_angle(tokens_, index);
  }

  bool at_namespace_scope() const { return bodies_ == 0; }

  std::string qualified(const std::string& name) const {
    std::string result;
    for (const Scope& scope : scopes_) {
      if (scope.kind == ScopeKind::named) result += scope.name + "::";
    }
    return result + name;
  }

  void end_declaration() {
    is_template_ = is_extern_c_ = is_instantiation_ = false;
    opener_ = Scope{};
    has_opener_ = false;
  }

  void step() {
    const Token& token = tokens_[at_];
    if (token.kind == TokenKind::punctuation) return punctuation(token.text[0]);
    if (token.kind != TokenKind::identifier) {
      ++at_;
      return;
    }
    if (token.text == "template") return template_head();
    if (token.text == "namespace") return namespace_head();
    if (token.text == "extern" && at_ + 1 < tokens_.size() &&
        tokens_[at_ + 1].kind == TokenKind::string) {
      return extern_head();
    }
    if (token.text == "__global__" && at_namespace_scope()) return kernel();
    if (makes_symbol(token.text) && at_namespace_scope()) return symbol();
    if ((token.text == "const" || token.text == "constexpr") && at_namespace_scope()) constants();
    ++at_;
  }

  void punctuation(char c) {
    if (c == '{') {
      scopes_.push_back(has_opener_ ? opener_ : Scope{});
      bodies_ += scopes_.back().kind == ScopeKind::body ? 1 : 0;
      end_declaration();
    } else if (c == '}') {
      if (!scopes_.empty()) {
        bodies_ -= scopes_.back().kind == ScopeKind::body ? 1 : 0;
        scopes_.pop_back();
      }
      end_declaration();
    } else if (c == ';') {
      end_declaration();
    } else if (c == '(' || c == '[') {
      at_ = behind_bracket(at_);
      return;
    }
    ++at_;
  }

  void template_head() {
    ++at_;
    if (is(at_, "<")) {
      is_template_ = !is(at_ + 1, ">");  // `template <>` specialises one that is known already
      at_ = behind_angle(at_);
    } else {
      is_instantiation_ = true;
    }
  }

  void namespace_head() {
    const bool is_inline = at_ > 0 && is(at_ - 1, "inline");
    std::string name;
    ++at_;
    while (at_ < tokens_.size() && !is(at_, "{") && !is(at_, ";") && !is(at_, "=")) {
      if (is(at_, "[") || is(at_, "(")) {
        at_ = behind_bracket(at_);
        continue;
      }
      const bool inline_part = is(at_, "inline");
      if (!inline_part && !tokens_[at_].text.starts_with("__attribute")) name += tokens_[at_].text;
      ++at_;
    }
    opener_ = name.empty() || is_inline ? Scope{ScopeKind::transparent, {}}
                                        : Scope{ScopeKind::named, name};
    has_opener_ = is(at_, "{");
  }

  void extern_head() {
    const bool is_c = tokens_[at_ + 1].text == "\"C\"";
    at_ += 2;
    if (is(at_, "{")) {
      opener_ = Scope{is_c ? ScopeKind::extern_c : ScopeKind::transparent, {}};
      has_opener_ = true;
    } else {
      is_extern_c_ = is_c;
    }
  }

  bool inside_extern_c() const {
    return is_extern_c_ || std::any_of(scopes_.begin(), scopes_.end(), [](const Scope& s) {
             return s.kind == ScopeKind::extern_c;
           });
  }

  /// Stands at __global__. Reads up to the end of the parameter list.
  void kernel() {
    ++at_;
    std::string name;
    int line = 0;
    for (; at_ < tokens_.size(); ++at_) {
      if (is(at_, ";") || is(at_, "{") || is(at_, "}") || is(at_, "=")) return;
      if (is(at_, "extern") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].text == "\"C\"") {
        is_extern_c_ = true;
        ++at_;
        continue;
      }
      if (is(at_, "[")) {
        at_ = behind_bracket(at_) - 1;
        continue;
      }
      if (is_identifier(at_)) {
        const bool continues_name = at_ > 0 && is(at_ - 1, "::") && !name.empty();
        if (!continues_name) name.clear();
        if (continues_name) name += "::";
        name += tokens_[at_].text;
        line = tokens_[at_].line;
        if (is(at_ + 1, "<")) at_ = behind_angle(at_ + 1) - 1;
        continue;
      }
      if (is(at_, "(") && parameter_list(name, line)) return;
    }
  }

  /// Stands at a '(' behind `name`. True when it opened the parameters of the kernel; otherwise the
  /// place moves to the matching ')'.
  bool parameter_list(const std::string& name, int line) {
    const auto end = behind_bracket(at_);
    const bool closed = end > at_ + 1 && is(end - 1, ")");
    const bool attribute = name.empty() || is_declaration_specifier_call(name);
    // A macro such as BOUNDS(128) is followed by the real name; one such as NAME(add) by '('.
    const bool last_word = is(end + 1, "{") || is(end + 1, ";");
    const bool macro =
        is(end, "(") || is(end, "::") ||
        (is_identifier(end) && !last_word && !is_declaration_specifier_call(tokens_[end].text));
    if (attribute || macro || !closed) {
      if (macro && is(end, "(")) {  // the name is made by a macro and cannot be known here
        at_ = behind_bracket(end);
        return true;
      }
      at_ = std::max(end, at_ + 1) - 1;
      return false;
    }
    KernelDeclaration kernel;
    kernel.name = qualified(name);
    const std::span<const Token> parameters{tokens_.data() + at_ + 1, end - at_ - 2};
    kernel.is_template =
        is_template_ || std::any_of(parameters.begin(), parameters.end(),
                                    [](const Token& token) { return token.text == "auto"; });
    kernel.is_extern_c = inside_extern_c();
    kernel.line = line;
    for (ScannedParameter& p : scan_parameters(parameters)) {
      kernel.parameter_names.push_back(std::move(p.name));
      kernel.parameter_types.push_back(std::move(p.type));
    }
    at_ = end;
    if (!is_instantiation_) {
      ++seen_;
      add(std::move(kernel));
    }
    is_instantiation_ = false;
    return true;
  }

  void add(KernelDeclaration kernel) {
    const auto [place, is_new] = kernel_index_.emplace(kernel.name, result_.kernels.size());
    if (is_new) {
      result_.kernels.push_back(std::move(kernel));
      return;
    }
    KernelDeclaration& found = result_.kernels[place->second];
    // A definition after a declaration: keep the text with more named parameters.
    const auto named = [](const KernelDeclaration& k) {
      return std::count_if(k.parameter_names.begin(), k.parameter_names.end(),
                           [](const std::string& n) { return !n.empty(); });
    };
    const bool is_template = found.is_template || kernel.is_template;
    const bool is_extern_c = found.is_extern_c || kernel.is_extern_c;
    if (named(kernel) > named(found)) found = std::move(kernel);
    found.is_template = is_template;
    found.is_extern_c = is_extern_c;
  }

  /// Stands at __device__ and its kin: records variables, steps over functions.
  void symbol() {
    std::string name;
    int line = 0;
    is_managed_ = is(at_, "__managed__");
    is_constant_ = begins_constant();
    for (++at_; at_ < tokens_.size(); ++at_) {
      if (is(at_, "(")) {
        if (!is_declaration_specifier_call(tokens_[at_ - 1].text)) return;  // a function
        at_ = behind_bracket(at_) - 1;
        continue;
      }
      if (is(at_, "{") && is_type_definition_) {  // a variable may follow
        at_ = behind_bracket(at_) - 1;
        name.clear();
        is_type_definition_ = false;
        continue;
      }
      if (is(at_, "{") && name.empty()) break;
      const bool ends =
          is(at_, ";") || is(at_, "=") || is(at_, "[") || is(at_, "{") || is(at_, ",");
      if (ends) {
        add_symbol(name, line);
        skip_initializer();
        if (!is(at_, ",")) break;
        name.clear();
        continue;
      }
      if (is(at_, "}") || is(at_, "operator")) return;
      is_managed_ = is_managed_ || is(at_, "__managed__");
      if (is(at_, "*")) is_constant_ = is_in_constant_memory_;  // a pointer to constants
      if (is_constant_word(at_)) is_constant_ = true;
      if (is(at_, "struct") || is(at_, "class") || is(at_, "union") || is(at_, "enum")) {
        is_type_definition_ = is(at_ + 2, "{") || is(at_ + 1, "{");
      }
      if (!is_identifier(at_) || is_declaration_specifier_call(tokens_[at_].text)) continue;
      name = std::string(tokens_[at_].text);
      line = tokens_[at_].line;
      if (is(at_ + 1, "<")) at_ = behind_angle(at_ + 1) - 1;
    }
    is_type_definition_ = false;
  }

  bool is_constant_word(std::size_t index) {
    is_in_constant_memory_ = is_in_constant_memory_ || is(index, "__constant__");
    return is_in_constant_memory_ || is(index, "const") || is(index, "constexpr");
  }

  /// Whether the declaration of the symbol here, or a word in front of it, makes a constant.
  bool begins_constant() {
    is_in_constant_memory_ = false;
    bool result = is_constant_word(at_);
    for (std::size_t i = at_; i > 0 && is_identifier(i - 1); --i) {
      result = is_constant_word(i - 1) || result;
    }
    return result;
  }

  /// Moves to the ',' or ';' at the end of a declarator.
  void skip_initializer() {
    while (at_ < tokens_.size() && !is(at_, ",") && !is(at_, ";")) {
      if (is(at_, "(") || is(at_, "[") || is(at_, "{")) {
        at_ = behind_bracket(at_);
      } else if (is(at_, "}")) {
        return;
      } else {
        ++at_;
      }
    }
  }

  /// Stands at const or constexpr: records the variables of the declaration, moves nowhere. Another
  /// const of the same declaration would find the same ones.
  void constants() {
    if (is_template_ || at_ < constants_end_) return;
    const std::size_t start = at_;
    std::vector<std::string> names;
    std::string name;
    const std::size_t limit = std::min(tokens_.size(), start + kMaxConstantTokens);
    for (++at_; at_ < limit && !is(at_, "}"); ++at_) {
      const Token& token = tokens_[at_];
      if (is(at_, "=") || is(at_, "{") || is(at_, "[") || is(at_, ";") || is(at_, ",")) {
        if (!name.empty()) names.push_back(qualified(name));
        skip_initializer();
        name.clear();
        if (!is(at_, ",")) break;
      } else if (is(at_, "(") || makes_symbol(token.text) || token.text == "__global__") {
        names.clear();
        break;
      } else if (is_identifier(at_)) {
        name = std::string(token.text);
        if (is(at_ + 1, "<")) at_ = behind_angle(at_ + 1) - 1;
      }
    }
    constants_end_ = at_;
    at_ = start;
    result_.constants.insert(names.begin(), names.end());
  }

  void add_symbol(const std::string& name, int line) {
    if (name.empty() || is_template_) return;
    SymbolDeclaration symbol{qualified(name), line, is_managed_, is_constant_};
    if (symbol_names_.insert(symbol.name).second) result_.symbols.push_back(std::move(symbol));
  }

  std::string_view text_;
  TokenizedSource source_;
  const std::vector<Token>& tokens_;
  std::size_t seen_ = 0;  ///< declarations of kernels, repeated ones too
  std::size_t at_ = 0;
  std::vector<Scope> scopes_;
  std::size_t bodies_ = 0;         ///< scopes that are no namespace
  std::size_t constants_end_ = 0;  ///< of the declaration that constants() read last
  std::map<std::string, std::size_t> kernel_index_;
  std::set<std::string> symbol_names_;
  Scope opener_;
  bool has_opener_ = false;
  bool is_template_ = false;
  bool is_extern_c_ = false;
  bool is_instantiation_ = false;
  bool is_type_definition_ = false;
  bool is_managed_ = false;
  bool is_constant_ = false;
  bool is_in_constant_memory_ = false;
  ScannedSource result_;
};

}  // namespace

ScannedSource scan_source(std::string_view text) { return Scanner(text).run(); }

std::vector<KernelDeclaration> find_kernels(std::string_view text) {
  return scan_source(text).kernels;
}

}  // namespace kernwright
