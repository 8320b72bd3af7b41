// The lexer: one pass, no allocation.
#include "sim/ptx/parse/lexer.h"

#include "base/format.h"
#include "sim/ptx/parse/parser.h"

#include <array>

namespace kernwright::sim::ptx {
namespace {

enum CharClass : std::uint8_t { kOther = 0, kBlank = 1, kDigit = 2, kStart = 4, kPunct = 8 };

constexpr std::array<std::uint8_t, 256> make_classes() {
  std::array<std::uint8_t, 256> table{};
  for (const char c : {' ', '\t', '\r', '\n', '\f', '\v'})
    table[static_cast<unsigned char>(c)] = kBlank;
  for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = kDigit;
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<std::size_t>(c)] = kStart;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<std::size_t>(c)] = kStart;
  for (const char c : {'_', '$', '%'}) table[static_cast<unsigned char>(c)] = kStart;
  for (const char c : std::string_view(",;:{}()[]<>|!@+-*/&=~^?")) {
    table[static_cast<unsigned char>(c)] = kPunct;
  }
  return table;
}

constexpr std::array<std::uint8_t, 256> kClasses = make_classes();

std::uint8_t char_class(char c) noexcept { return kClasses[static_cast<unsigned char>(c)]; }

bool is_follow(char c) noexcept { return (char_class(c) & (kDigit | kStart)) != 0 && c != '%'; }

std::string printable(char c) {
  if (c >= 32 && c < 127) return format("'{}'", c);
  return format("byte 0x{:02x}", static_cast<unsigned char>(c));
}

}  // namespace

Lexer::Lexer(std::string_view text, std::int32_t first_line) : text_(text), line_(first_line) {
  current_ = scan();
  ahead_ = scan();
}

Token Lexer::take() {
  Token token = current_;
  current_ = ahead_;
  if (current_.kind != TokenKind::end) ahead_ = scan();
  return token;
}

bool Lexer::skip_blank() {
  const std::size_t start = position_;
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (char_class(c) == kBlank) {
      line_ += c == '\n';
      ++position_;
      continue;
    }
    const char next = c == '/' && position_ + 1 < text_.size() ? text_[position_ + 1] : '\0';
    if (next == '/') {
      position_ = text_.find('\n', position_);
      if (position_ == std::string_view::npos) position_ = text_.size();
    } else if (next == '*') {
      const std::size_t close = text_.find("*/", position_ + 2);
      if (close == std::string_view::npos) {
        throw PtxError(format("PTX line {}: a comment is not closed", line_), line_);
      }
      for (std::size_t i = position_; i < close; ++i) line_ += text_[i] == '\n';
      position_ = close + 2;
    } else {
      break;
    }
  }
  return position_ != start;
}

std::size_t Lexer::word_end(std::size_t from) const noexcept {
  while (from < text_.size() && is_follow(text_[from])) ++from;
  return from;
}

// `.L2::cache_hint` is one token.
std::size_t Lexer::dotted_end(std::size_t from) const noexcept {
  std::size_t end = word_end(from);
  while (end + 2 < text_.size() && text_[end] == ':' && text_[end + 1] == ':' &&
         is_follow(text_[end + 2])) {
    end = word_end(end + 2);
  }
  return end;
}

Token Lexer::scan_string() {
  const std::size_t begin = position_ + 1;
  std::size_t end = begin;
  while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
    end += text_[end] == '\\' && end + 1 < text_.size() && text_[end + 1] != '\n' ? 2 : 1;
  }
  if (end >= text_.size() || text_[end] != '"') {
    throw PtxError(format("PTX line {}: a string is not closed", line_), line_);
  }
  position_ = end + 1;
  return {.kind = TokenKind::string, .line = line_, .text = text_.substr(begin, end - begin)};
}

Token Lexer::scan_number() {
  const std::size_t begin = position_;
  std::size_t end = word_end(begin);
  const std::string_view head = text_.substr(begin, end - begin);
  const bool prefixed = head.size() > 1 && head[0] == '0' && char_class(head[1]) == kStart &&
                        head[1] != 'e' && head[1] != 'E' && head[1] != 'U';
  if (!prefixed) {
    if (end < text_.size() && text_[end] == '.') end = word_end(end + 1);
    const char last = text_[end - 1];
    const bool exponent = (last == 'e' || last == 'E') && end < text_.size() &&
                          (text_[end] == '+' || text_[end] == '-');
    if (exponent) end = word_end(end + 1);
  }
  position_ = end;
  return {.kind = TokenKind::number, .line = line_, .text = text_.substr(begin, end - begin)};
}

Token Lexer::scan() {
  const bool spaced = skip_blank();
  Token token;
  token.spaced = spaced;
  token.line = line_;
  if (position_ >= text_.size()) return token;
  const char c = text_[position_];
  if (char_class(c) == kStart) {
    const std::size_t end = word_end(position_ + 1);
    token.kind = TokenKind::word;
    token.text = text_.substr(position_, end - position_);
    position_ = end;
  } else if (c == '.' && position_ + 1 < text_.size() && is_follow(text_[position_ + 1])) {
    const std::size_t end = dotted_end(position_ + 1);
    token.kind = TokenKind::dotted;
    token.text = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end;
  } else if (char_class(c) == kDigit) {
    token = scan_number();
  } else if (c == '"') {
    token = scan_string();
  } else if (char_class(c) == kPunct) {
    token.kind = TokenKind::punct;
    token.punct = c;
    token.text = text_.substr(position_++, 1);
  } else {
    throw PtxError(format("PTX line {}: unexpected {}", line_, printable(c)), line_);
  }
  token.spaced = spaced;
  return token;
}

}  // namespace kernwright::sim::ptx
