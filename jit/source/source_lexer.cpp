// A tolerant lexer of C++ text.
#include "jit/source/source_lexer.h"

#include <algorithm>
#include <array>
#include <set>

namespace kernwright {
namespace {

bool is_identifier_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_identifier_part(char c) { return is_identifier_start(c) || is_digit(c); }
bool is_raw_prefix(std::string_view word) {
  return word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R";
}
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  TokenizedSource run() {
    result_.tokens.reserve(std::min<std::size_t>(text_.size() / 4, 1024));
    while (at_ < text_.size()) step();
    return std::move(result_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void advance() {
    if (text_[at_] == '\n') {
      ++line_;
      line_is_fresh_ = true;
    }
    ++at_;
  }

  /// Length of a backslash-newline at the current place, 0 where there is none.
  std::size_t continuation() const {
    if (peek() != '\\') return 0;
    if (peek(1) == '\n') return 2;
    return peek(1) == '\r' && peek(2) == '\n' ? 3 : 0;
  }

  void skip_continuation(std::size_t length) {
    at_ += length;
    ++line_;
  }

  /// Whether "%:" comes next, possibly on two joined lines.
  bool is_digraph_hash() const {
    if (peek() != '%') return false;
    auto at = at_ + 1;
    while (at < text_.size() && text_[at] == '\\') {
      const std::string_view rest = text_.substr(at);
      const std::size_t length = rest.starts_with("\\\n") ? 2 : rest.starts_with("\\\r\n") ? 3 : 0;
      if (length == 0) return false;
      at += length;
    }
    return at < text_.size() && text_[at] == ':';
  }

  void step() {
    const char c = peek();
    if (const auto length = continuation()) return skip_continuation(length);
    if (c == '\n' || is_space(c)) return advance();
    if (c == '/' && peek(1) == '/') return skip_line_comment();
    if (c == '/' && peek(1) == '*') return skip_block_comment();
    if (line_is_fresh_ && (c == '#' || is_digraph_hash())) return directive();
    line_is_fresh_ = false;
    if (is_identifier_start(c)) return identifier();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      const auto begin = at_;
      skip_number();
      return emit(TokenKind::number, begin, at_ - begin, line_);
    }
    if (c == '"') return quoted('"', TokenKind::string);
    if (c == '\'') return quoted('\'', TokenKind::character);
    const bool pair = (c == ':' && peek(1) == ':') || (c == '-' && peek(1) == '>');
    emit(TokenKind::punctuation, at_, pair ? 2 : 1, line_);
    at_ += pair ? 2 : 1;
  }

  void emit(TokenKind kind, std::size_t begin, std::size_t length, int line) {
    result_.tokens.push_back({kind, text_.substr(begin, length), line});
  }

  void skip_line_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (const auto length = continuation()) {
        skip_continuation(length);
      } else {
        ++at_;
      }
    }
  }

  void skip_block_comment() {
    at_ += 2;
    while (at_ < text_.size() && !(peek() == '*' && peek(1) == '/')) {
      if (text_[at_] == '\n') ++line_;
      ++at_;
    }
    at_ = std::min(at_ + 2, text_.size());
  }

  void directive() {
    Directive found;
    found.begin = at_;
    found.line = line_;
    if (text_[at_++] == '%') {
      while (const auto length = continuation()) skip_continuation(length);
      ++at_;
    }
    found.text = "#";
    while (at_ < text_.size() && text_[at_] != '\n') {
      const auto begin = at_;
      if (const auto length = continuation()) {
        skip_continuation(length);
      } else if (peek() == '/' && peek(1) == '/') {
        skip_line_comment();
      } else if (peek() == '/' && peek(1) == '*') {
        skip_block_comment();
        found.text += ' ';
      } else {
        skip_part(found.text);
        append_joined(found.text, text_.substr(begin, at_ - begin));
      }
    }
    found.end = at_;
    note_include(found);
    result_.directives.push_back(std::move(found));
  }

  /// Skips the next part of a directive after `before`.
  void skip_part(std::string_view before) {
    const auto begin = at_;
    if (is_identifier_start(peek())) {
      while (at_ < text_.size() && is_identifier_part(text_[at_])) ++at_;
      if (is_raw_prefix(text_.substr(begin, at_ - begin)) && peek() == '"') skip_raw_string();
    } else if (is_digit(peek())) {
      skip_number();
    } else if (peek() == '"' || peek() == '\'') {
      skip_quoted(peek());
    } else {
      ++at_;
      // In angle brackets, // and /* belong to the name.
      if (text_[begin] == '<' && may_name_follow(before) && closes_name()) at_ = name_end_ + 1;
    }
  }

  /// Whether a '>' comes before the end of the line; name_end_ is its place. A line is searched
  /// once for each '>', so a line of many '<' costs no time quadratic in its length.
  bool closes_name() {
    if (name_end_ < at_ || name_end_ == 0) name_end_ = text_.find_first_of(">\n", at_);
    return name_end_ != std::string_view::npos && text_[name_end_] == '>';
  }

  /// Behind "#include", "#embed" and "(".
  static bool may_name_follow(std::string_view before) {
    while (!before.empty() && is_space(before.back())) before.remove_suffix(1);
    return before.ends_with('(') || before.ends_with("include") ||
           before.ends_with("include_next") || before.ends_with("embed");
  }

  /// Adds the part without the line breaks of continued lines.
  static void append_joined(std::string& text, std::string_view part) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      const std::string_view rest = part.substr(i);
      if (rest.starts_with("\\\n")) {
        ++i;
      } else if (rest.starts_with("\\\r\n")) {
        i += 2;
      } else {
        text += rest.front();
      }
    }
  }

  void note_include(const Directive& directive) {
    std::string_view rest = directive.text;
    const auto skip_spaces = [&] {
      while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
    };
    rest.remove_prefix(1);
    skip_spaces();
    constexpr std::string_view kInclude = "include";
    constexpr std::string_view kNext = "include_next";
    if (!rest.starts_with(kInclude)) return;
    rest.remove_prefix(rest.starts_with(kNext) ? kNext.size() : kInclude.size());
    skip_spaces();
    if (rest.empty() || (rest.front() != '"' && rest.front() != '<')) return;
    const bool is_quoted = rest.front() == '"';
    const auto end = rest.find(is_quoted ? '"' : '>', 1);
    if (end == std::string_view::npos) return;
    result_.includes.push_back({std::string(rest.substr(1, end - 1)), is_quoted, directive.line});
  }

  void identifier() {
    const auto begin = at_;
    while (at_ < text_.size() && is_identifier_part(text_[at_])) ++at_;
    const auto word = text_.substr(begin, at_ - begin);
    if (is_raw_prefix(word) && peek() == '"') {
      const int line = line_;
      if (skip_raw_string()) return emit(TokenKind::string, begin, at_ - begin, line);
    }
    emit(TokenKind::identifier, begin, word.size(), line_);
  }

  /// The text stands at the quote of a raw string. False when it is no well-formed one.
  bool skip_raw_string() {
    constexpr std::size_t kMaxDelimiter = 16;
    const auto length = text_.substr(at_ + 1, kMaxDelimiter + 1).find('(');
    if (length == std::string_view::npos || unclosed_.contains(text_.substr(at_ + 1, length))) {
      return false;
    }
    const std::string_view delimiter = text_.substr(at_ + 1, length);
    const auto open = at_ + 1 + length;
    auto end = open;
    do {
      end = text_.find(')', end + 1);
      if (end == std::string_view::npos) {
        unclosed_.insert(delimiter);  // no later raw string with this delimiter ends, either
        return false;
      }
    } while (text_.substr(end + 1, delimiter.size()) != delimiter ||
             end + 1 + delimiter.size() >= text_.size() ||
             text_[end + 1 + delimiter.size()] != '"');
    const auto stop = end + delimiter.size() + 2;
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(stop), '\n'));
    at_ = stop;
    return true;
  }

  void skip_number() {
    const auto begin = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const char before = at_ > begin ? text_[at_ - 1] : '\0';
      const bool exponent_sign = (c == '+' || c == '-') &&
                                 (before == 'e' || before == 'E' || before == 'p' || before == 'P');
      const bool separator = c == '\'' && is_identifier_part(peek(1));
      if (!is_identifier_part(c) && c != '.' && !exponent_sign && !separator) break;
      ++at_;
    }
  }

  /// Stands at the opening quote; ends behind the closing one or at the end of the line.
  void skip_quoted(char quote) {
    ++at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (const auto length = continuation()) {
        skip_continuation(length);
      } else {
        at_ += text_[at_] == '\\' && at_ + 1 < text_.size() && peek(1) != '\n' ? 2 : 1;
      }
    }
    if (peek() == quote) ++at_;
  }

  void quoted(char quote, TokenKind kind) {
    const auto begin = at_;
    const int line = line_;
    skip_quoted(quote);
    emit(kind, begin, at_ - begin, line);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_is_fresh_ = true;
  std::size_t name_end_ = 0;             ///< of closes_name(); 0: not looked for yet
  std::set<std::string_view> unclosed_;  ///< delimiters of raw strings that do not end
  TokenizedSource result_;
};

/// Argument lists of templates are shorter; a lone '<' must not cost a walk to the end each time.
constexpr std::size_t kMostAngleTokens = 4096;

}  // namespace

bool is_declaration_specifier_call(std::string_view word) {
  constexpr std::array kWords{"alignas", "decltype", "noexcept", "requires", "explicit", "typeof"};
  return word.starts_with("__") || std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

TokenizedSource tokenize(std::string_view text) { return Lexer(text).run(); }

std::size_t behind_bracket(std::span<const Token> tokens, std::size_t index) {
  int depth = 0;
  for (; index < tokens.size(); ++index) {
    if (tokens[index].kind != TokenKind::punctuation) continue;
    const char c = tokens[index].text[0];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && --depth <= 0) return index + 1;
  }
  return tokens.size();
}

std::size_t behind_angle(std::span<const Token> tokens, std::size_t index) {
  int depth = 0;
  const std::size_t limit = std::min(tokens.size(), index + kMostAngleTokens);
  for (std::size_t i = index; i < limit; ++i) {
    if (tokens[i].kind != TokenKind::punctuation) continue;
    const char c = tokens[i].text[0];
    if (c == '(' || c == '[' || c == '{') {
      i = behind_bracket(tokens, i) - 1;
      continue;
    }
    if (c == ';' || c == '}' || c == ')') break;
    if (c == '<') ++depth;
    if (c == '>' && --depth == 0) return i + 1;
  }
  return index + 1;
}

}  // namespace kernwright
