// Walks over declarations and blanks out those of the host.
#include "jit/source/host_code.h"

#include <algorithm>
#include <array>
#include <vector>

#include "jit/source/host_names.h"
#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 6> kDeviceMarks{
    "__device__", "__global__", "__constant__", "__shared__", "__managed__", "__grid_constant__"};
constexpr std::array<std::string_view, 4> kAttributes{"alignas", "__align__", "__attribute__",
                                                      "__declspec"};
constexpr std::array<std::string_view, 9> kSpecifiers{
    "typedef", "static", "const", "inline", "constexpr", "extern", "volatile", "friend", "mutable"};
constexpr std::array<std::string_view, 4> kClassKeys{"struct", "class", "union", "enum"};

/// The kind of a declaration, and the token after it.
struct Declaration {
  std::size_t end = 0;
  bool is_host = false;
};

/// The word behind the '#' of the line at `at`, and the rest.
std::pair<std::string_view, std::string_view> directive_at(std::string_view text, std::size_t at) {
  std::string_view line = text.substr(at, text.find('\n', at) - at);
  const auto skip = [&] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  skip();
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  skip();
  const auto length = std::min(line.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), line.size());
  const std::string_view word = line.substr(0, length);
  line.remove_prefix(length);
  skip();
  return {word, line};
}

/// The text with blanks for everything after "#if 0", and for further branches of an #if with
/// unbalanced braces in its first branch: both branches together would not nest.
std::string one_branch(std::string_view text) {
  struct Branch {
    int balance = 0;
    bool is_first = true;
    bool is_blank = false;
  };
  std::string result(text);
  std::vector<Branch> open;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto [word, rest] = directive_at(text, at);
    const bool outer_blank =
        std::any_of(open.begin(), open.end(), [](const Branch& b) { return b.is_blank; });
    if (word == "if" || word == "ifdef" || word == "ifndef") {
      open.push_back({0, true, word == "if" && rest.substr(0, rest.find_first_of(" \t\r")) == "0"});
    } else if ((word == "else" || word == "elif") && !open.empty()) {
      Branch& branch = open.back();
      branch.is_blank = branch.is_first ? !branch.is_blank && branch.balance != 0 : branch.is_blank;
      branch.is_first = false;
    } else if (word == "endif" && !open.empty()) {
      open.pop_back();
    } else if (word.empty() && outer_blank) {
      std::fill(result.begin() + static_cast<std::ptrdiff_t>(at),
                result.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    } else if (word.empty()) {
      for (std::size_t i = at; i < end; ++i) {
        const int step = text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
        for (Branch& branch : open) branch.balance += branch.is_first ? step : 0;
      }
    }
    at = end + 1;
  }
  return result;
}

class HostCode {
 public:
  HostCode(std::string_view text, const KnownMacros& macros)
      : text_(text), macros_(macros), parsed_(one_branch(text)), tokens_(tokenize(parsed_).tokens) {
    for (std::size_t i = 0; i + 2 < tokens_.size(); ++i) {
      if (is(i, "using") && is(i + 1, "namespace") && is(i + 2, "std")) uses_std_ = true;
    }
  }

  std::string run() {
    while (at_ < tokens_.size()) {
      scope(false);
      if (at_ < tokens_.size()) ++at_;  // a '}' too many
    }
    std::string result(text_);
    for (const auto& [begin, end] : removed_) blank(result, begin, end);
    return result;
  }

 private:
  bool is(std::size_t i, std::string_view word) const {
    return i < tokens_.size() && tokens_[i].text == word && tokens_[i].kind != TokenKind::string;
  }
  bool is_identifier(std::size_t i) const {
    return i < tokens_.size() && tokens_[i].kind == TokenKind::identifier;
  }
  std::string_view word(std::size_t i) const {
    return i < tokens_.size() ? tokens_[i].text : std::string_view();
  }

  /// The index after the bracket that closes the one at `i`.
  std::size_t behind_bracket(std::size_t i) const { return kernwright::behind_bracket(tokens_, i); }

  /// The index after the '>' that closes the '<' at `i`.
  std::size_t behind_angle(std::size_t i) const {
    int depth = 0;
    while (i < tokens_.size()) {
      if (is(i, "<")) ++depth;
      if (is(i, ">") && --depth == 0) return i + 1;
      if (is(i, ";") || is(i, "{")) return i;
      i = is(i, "(") ? behind_bracket(i) : i + 1;
    }
    return i;
  }

  std::size_t behind_semicolon(std::size_t i) const {
    while (i < tokens_.size() && !is(i, ";") && !is(i, "}")) {
      i = is(i, "(") || is(i, "{") || is(i, "[") ? behind_bracket(i) : i + 1;
    }
    return is(i, ";") ? i + 1 : i;
  }

  /// Reads up to the closing '}' of the scope, or the end.
  void scope(bool in_class) {
    while (at_ < tokens_.size() && !is(at_, "}")) {
      if (is(at_, ";")) {
        ++at_;
      } else if (in_class && is(at_ + 1, ":") && is_identifier(at_)) {
        at_ += 2;  // public:
      } else if (!open_namespace()) {
        declaration(in_class);
      }
    }
  }

  void enter(std::size_t brace, bool in_class) {
    at_ = brace + 1;
    scope(in_class);
    if (is(at_, "}")) ++at_;
  }

  bool open_namespace() {
    std::size_t i = at_ + (is(at_, "inline") ? 1 : 0);
    const bool linkage = is(at_, "extern") && at_ + 1 < tokens_.size() &&
                         tokens_[at_ + 1].kind == TokenKind::string && is(at_ + 2, "{");
    if (linkage) {
      enter(at_ + 2, false);
      return true;
    }
    if (!is(i, "namespace")) return false;
    while (i < tokens_.size() && !is(i, "{") && !is(i, ";") && !is(i, "=")) ++i;
    if (is(i, "{")) {
      enter(i, false);
    } else {
      at_ = behind_semicolon(i);
    }
    return true;
  }

  void declaration(bool in_class) {
    const std::size_t begin = at_;
    std::size_t i = begin;
    while (is(i, "template") && is(i + 1, "<")) i = behind_angle(i + 1);
    const Declaration found = classify(begin, i, in_class);
    at_ = std::max(found.end, begin + 1);
    if (found.is_host) remove(begin, at_);
  }

  Declaration classify(std::size_t begin, std::size_t i, bool in_class) {
    if (is(i, "using") || is(i, "static_assert") || is(i, "friend")) {
      const std::size_t end = behind_semicolon(i);
      return {end, names_host(begin, end)};
    }
    if (macros_.functions.contains(word(i)) && is(i + 1, "(")) {
      const std::size_t end = behind_bracket(i + 1);
      const bool stands_alone = end >= tokens_.size() || is(end, ";") || is(end, "}") ||
                                (!is(end, "{") && tokens_[end].line != tokens_[end - 1].line);
      if (stands_alone) return {is(end, ";") ? end + 1 : end, names_host(begin, end)};
    }
    const std::size_t stop = head_end(i);
    if (is(stop, "{")) return with_braces(begin, i, stop, in_class);
    const std::size_t end = is(stop, ";") ? stop + 1 : stop;
    return {end, is_host_statement(begin, i, stop, in_class)};
  }

  /// The ';', the '}' of the scope, or the '{' of a body, an initializer or a class.
  std::size_t head_end(std::size_t i) const {
    bool has_list = false;
    while (i < tokens_.size() && !is(i, ";") && !is(i, "}")) {
      if (is(i, "operator")) i = behind_operator(i);
      if (is(i, "=")) return initializer_end(i);
      if (is(i, ":") && i > 0 && (is(i - 1, ")") || is(i - 1, "noexcept"))) has_list = true;
      if (is(i, "{")) {
        const bool of_member = has_list && (is_identifier(i - 1) || is(i - 1, ">"));
        if (!of_member) return i;
      }
      i = is(i, "(") || is(i, "[") || is(i, "{") ? behind_bracket(i) : i + 1;
    }
    return i;
  }

  /// The '(' of an operator's parameters; the operator's own signs are skipped.
  std::size_t behind_operator(std::size_t i) const {
    ++i;
    if (is(i, "(") && is(i + 1, ")")) return i + 2;
    while (i < tokens_.size() && !is(i, "(") && !is(i, ";") && !is(i, "{")) ++i;
    return i;
  }

  std::size_t initializer_end(std::size_t i) const {
    while (i < tokens_.size() && !is(i, ";") && !is(i, "}")) {
      i = is(i, "(") || is(i, "[") || is(i, "{") ? behind_bracket(i) : i + 1;
    }
    return i;
  }

  /// The first token of [i, stop) after specifiers and attributes.
  std::size_t behind_specifiers(std::size_t i, std::size_t stop) const {
    while (i < stop) {
      if (is_one_of(kAttributes, word(i)) && is(i + 1, "(")) {
        i = behind_bracket(i + 1);
      } else if (is(i, "[")) {
        i = behind_bracket(i);
      } else if (is_one_of(kSpecifiers, word(i))) {
        ++i;
      } else {
        return i;
      }
    }
    return i;
  }

  /// Whether [i, brace) is the head of a class or enum, rather than of a function returning one.
  bool is_class_head(std::size_t i, std::size_t brace) const {
    i = behind_specifiers(i, brace);
    if (!is_one_of(kClassKeys, word(i))) return false;
    for (++i; i < brace; ++i) {
      if (is(i, "(") && !is_one_of(kAttributes, word(i - 1)) &&
          !macros_.functions.contains(word(i - 1))) {
        return false;
      }
      if (is(i, "(")) i = behind_bracket(i) - 1;
    }
    return true;
  }

  Declaration with_braces(std::size_t begin, std::size_t i, std::size_t brace, bool in_class) {
    const std::size_t behind = behind_bracket(brace);
    if (is_class_head(i, brace)) {
      const std::size_t end = behind_semicolon(behind);
      if (!is_for_device(brace, end, true) && names_host(begin, end)) return {end, true};
      if (!is(behind_specifiers(i, brace), "enum")) enter(brace, true);
      return {end, false};
    }
    const bool has_parameters = std::any_of(tokens_.begin() + static_cast<std::ptrdiff_t>(i),
                                            tokens_.begin() + static_cast<std::ptrdiff_t>(brace),
                                            [](const Token& token) { return token.text == "("; });
    if (!has_parameters) {  // int x{3};
      return {behind_semicolon(behind), is_host_statement(begin, i, brace, in_class)};
    }
    return {is(behind, ";") ? behind + 1 : behind, !is_for_device(i, brace)};
  }

  /// Whether a declaration with a ';' at its end is host code.
  bool is_host_statement(std::size_t begin, std::size_t i, std::size_t stop, bool in_class) const {
    if (names_host(begin, stop)) return true;
    if (is_for_device(i, stop) || in_class || begin == stop) return false;
    if (is(begin, "typedef") || is(i, "typedef")) return false;
    const std::size_t first = behind_specifiers(i, stop);
    if (is(i, "template")) return !is_one_of(kClassKeys, word(i + 1));  // an instantiation
    if (is_one_of(kClassKeys, word(first)) && !has(first, stop, "(") && stop - first <= 4) {
      return false;  // struct P;
    }
    if (has(i, stop, "(")) return !is_constant(i, stop);
    if (!is_identifier(first)) return false;
    return !is_constant(i, stop);
  }

  /// A constant usable in device code: of numbers, and known while compiling.
  bool is_constant(std::size_t i, std::size_t stop) const {
    bool is_const = false;
    for (; i < stop && !is(i, "=") && !is(i, "("); ++i) {
      if (is(i, "const")) is_const = true;
      if (is(i, "*") || is(i, "&")) return false;
    }
    if (!is_const || !is(i, "=")) return false;
    for (; i < stop; ++i) {
      const bool is_call = is_identifier(i) && is(i + 1, "(") && !is(i, "sizeof") &&
                           !macros_.functions.contains(word(i));
      if (is_call || tokens_[i].kind == TokenKind::string) return false;
    }
    return true;
  }

  bool has(std::size_t begin, std::size_t end, std::string_view wanted) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (is(i, wanted)) return true;
    }
    return false;
  }

  bool is_for_device(std::size_t begin, std::size_t end, bool whole = false) const {
    for (std::size_t i = begin; i < end && (whole || !is(i, "=")); ++i) {
      if (is_one_of(kDeviceMarks, word(i)) || is(i, "constexpr") || is(i, "consteval") ||
          macros_.device.contains(word(i))) {
        return true;
      }
    }
    return false;
  }

  bool names_host(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (!is_identifier(i)) continue;
      const bool in_std = i >= 2 && is(i - 1, "::") && is(i - 2, "std");
      if (in_std ? is_host_std_name(word(i)) : is_host_type(word(i))) return true;
      if (is(i + 1, "::") && is_host_namespace(word(i))) return true;
      const bool is_plain = !is(i - (i > 0 ? 1 : 0), "::") && !is(i - (i > 0 ? 1 : 0), ".");
      if (uses_std_ && is_plain && is(i + 1, "<") && is_host_std_name(word(i))) return true;
      if (uses_std_ && is_plain && is(i, "string") && is_identifier(i + 1)) return true;
    }
    return false;
  }

  void remove(std::size_t begin, std::size_t end) {
    const auto offset = [&](std::string_view part) {
      return static_cast<std::size_t>(part.data() - parsed_.data());
    };
    const Token& last = tokens_[end - 1];
    removed_.emplace_back(offset(tokens_[begin].text), offset(last.text) + last.text.size());
  }

  /// Blanks in place of all but line breaks and the #if and #define lines between.
  void blank(std::string& text, std::size_t begin, std::size_t end) const {
    bool is_kept = false;
    for (std::size_t i = begin; i < end; ++i) {
      const bool starts_line = i == 0 || text_[i - 1] == '\n';
      if (starts_line) {
        const bool continued = is_kept && i >= 2 && text_[i - 2] == '\\';
        is_kept = continued || is_kept_directive(i);
      }
      if (!is_kept && text[i] != '\n' && text[i] != '\r') text[i] = ' ';
    }
  }

  bool is_kept_directive(std::size_t i) const {
    const std::string_view word = directive_at(text_, i).first;
    return !word.empty() && word != "pragma" && word != "line";
  }

  std::string_view text_;
  const KnownMacros& macros_;
  std::string parsed_;  ///< the text as its tokens are read, with the same offsets
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  bool uses_std_ = false;
  std::vector<std::pair<std::size_t, std::size_t>> removed_;
};

/// The body of each #define with its name and whether it has parameters.
template <typename F>
void each_define(std::string_view text, F use) {
  for (std::size_t at = 0; at < text.size();) {
    auto end = text.find('\n', at);
    while (end != std::string_view::npos && end > at && text[end - 1] == '\\') {
      end = text.find('\n', end + 1);
    }
    end = std::min(end, text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const auto [word, rest] = directive_at(line, 0);
    if (word != "define") continue;
    line = line.substr(static_cast<std::size_t>(rest.data() - line.data()));
    const auto length = std::min(line.find_first_of(" \t\r(\\"), line.size());
    const std::string_view name = line.substr(0, length);
    if (!name.empty()) use(name, line.substr(length).starts_with('('), line.substr(length));
  }
}

}  // namespace

void collect_macros(std::string_view text, KnownMacros& macros) {
  each_define(text, [&](std::string_view name, bool has_parameters, std::string_view body) {
    if (has_parameters) macros.functions.emplace(name);
    for (const Token& token : tokenize(body).tokens) {
      if (is_one_of(kDeviceMarks, token.text) || macros.device.contains(token.text)) {
        macros.device.emplace(name);
      }
    }
  });
}

std::string without_host_code(std::string_view text, const KnownMacros& macros) {
  return HostCode(text, macros).run();
}

}  // namespace kernwright
