// Numbers, strings and symbols with Python's spelling.
#include "tune/expression_lexer.h"

#include "base/errors.h"
#include "base/format.h"

#include <array>
#include <charconv>

namespace kernwright {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// A longer symbol before its own beginning.
constexpr std::array<std::string_view, 26> kSymbols = {
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%",
    "&",  "|",  "^",  "~",  "<",  ">",  "(",  ")",  "[", "]", ",", "{", "}"};

struct Advice {
  std::string_view symbol;
  const char* advice;
};
constexpr std::array kAdvice = {Advice{"&&", "write 'and'"}, Advice{"||", "write 'or'"},
                                Advice{"!", "write 'not'"}, Advice{"=", "write '=='"},
                                Advice{"?", "write 'a if condition else b'"}};

}  // namespace

void fail_in_expression(std::string_view text, std::size_t position, const std::string& what) {
  constexpr std::size_t kShown = 200;
  std::string shown(text.substr(0, kShown));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  throw InvalidArgument(format("\"{}{}\": {} (column {})", shown, text.size() > kShown ? "..." : "",
                               what, position + 1));
}

void ExpressionLexer::advance() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  token_ = ExpressionToken{};
  token_.position = at_;
  if (at_ == text_.size()) return;
  const char c = text_[at_];
  const bool point_number = c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]);
  if (is_digit(c) || point_number) return read_number();
  if (c == '"' || c == '\'') return read_string();
  if (!is_letter(c)) return read_symbol();
  while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
  token_.kind = ExpressionToken::Kind::word;
  token_.spelling = text_.substr(token_.position, at_ - token_.position);
}

void ExpressionLexer::read_symbol() {
  const std::string_view rest = text_.substr(at_);
  for (const Advice& known : kAdvice) {
    const bool longer = known.symbol.size() == 1 && rest.size() > 1 && rest[1] == '=';
    if (rest.starts_with(known.symbol) && !longer)
      fail_in_expression(
          text_, at_,
          format("{} is not part of the expression language: {}", known.symbol, known.advice));
  }
  for (const std::string_view symbol : kSymbols) {
    if (!rest.starts_with(symbol)) continue;
    token_.kind = ExpressionToken::Kind::symbol;
    token_.spelling = rest.substr(0, symbol.size());
    at_ += symbol.size();
    return;
  }
  const auto byte = static_cast<unsigned char>(text_[at_]);
  fail_in_expression(text_, at_,
                     byte >= ' ' && byte < 127
                         ? format("'{}' is not part of the expression language", text_[at_])
                         : format("byte {} is not part of the expression language", int{byte}));
}

Value ExpressionLexer::integer_value(std::string_view digits, int base) const {
  std::int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (read.ec == std::errc::result_out_of_range)
    fail_in_expression(text_, token_.position, "the integer does not fit 64 bits");
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size())
    fail_in_expression(text_, token_.position, "this is no number");
  return value;
}

void ExpressionLexer::read_number() {
  std::string digits;  // without the underscores between digits
  const auto take = [&](auto&& accepted) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool joins = c == '_' && !digits.empty() && at_ + 1 < text_.size() &&
                         accepted(text_[at_ + 1]) && text_[at_ - 1] != '_';
      if (!accepted(c) && !joins) break;
      if (!joins) digits += c;
      ++at_;
    }
  };
  token_.kind = ExpressionToken::Kind::number;
  const auto is_alphanumeric = [](char c) { return is_digit(c) || (is_letter(c) && c != '_'); };
  const std::string_view head = text_.substr(at_, 2);
  const int base = head == "0x" || head == "0X"   ? 16
                   : head == "0b" || head == "0B" ? 2
                   : head == "0o" || head == "0O" ? 8
                                                  : 10;
  bool is_real = false;
  if (base != 10) {
    at_ += 2;
    take(is_alphanumeric);
  } else {
    take(is_digit);
    if (at_ < text_.size() && text_[at_] == '.') {
      is_real = true;
      digits += text_[at_++];
      take(is_digit);
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      is_real = true;
      digits += text_[at_++];
      if (at_ < text_.size() && text_[at_] == '-')
        digits += text_[at_++];
      else if (at_ < text_.size() && text_[at_] == '+')
        ++at_;
      take(is_digit);
    }
  }
  if (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_])))
    fail_in_expression(text_, token_.position, "this is no number");
  token_.spelling = text_.substr(token_.position, at_ - token_.position);
  if (!is_real) {
    if (base == 10 && digits.size() > 1 && digits[0] == '0' &&
        digits.find_first_not_of('0') != std::string::npos)
      fail_in_expression(text_, token_.position, "an integer must not begin with 0");
    token_.value = integer_value(digits, base);
    return;
  }
  double value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size())
    fail_in_expression(text_, token_.position, "this number does not fit a double");
  token_.value = value;
}

void ExpressionLexer::read_string() {
  const char quote = text_[at_++];
  std::string value;
  for (;; ++at_) {
    if (at_ == text_.size() || text_[at_] == '\n')
      fail_in_expression(text_, token_.position, "the string does not end");
    char c = text_[at_];
    if (c == quote) break;
    if (c == '\\') {
      if (++at_ == text_.size())
        fail_in_expression(text_, token_.position, "the string does not end");
      const std::size_t known = std::string_view("\\'\"nt").find(text_[at_]);
      if (known == std::string_view::npos)
        fail_in_expression(text_, at_ - 1, "a string may escape only \\\\, \\', \\\", \\n and \\t");
      c = "\\'\"\n\t"[known];
    }
    value += c;
  }
  ++at_;
  token_.kind = ExpressionToken::Kind::text;
  token_.spelling = text_.substr(token_.position, at_ - token_.position);
  token_.value = std::move(value);
}

}  // namespace kernwright
