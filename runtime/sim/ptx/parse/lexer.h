// Splits PTX text into tokens, as views into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kernwright::sim::ptx {

enum class TokenKind : std::uint8_t {
  end,
  word,    ///< identifier, register or opcode stem: `add`, `%r1`, `$L__BB0_1`, `_`
  dotted,  ///< `.word` without its dot: `global`, `L2::cache_hint`
  number,  ///< starts with a digit; ptx/parse/literal.h reads it
  string,  ///< without the quotes
  punct,   ///< one character: `punct`
};

struct Token {
  TokenKind kind = TokenKind::end;
  char punct = 0;
  bool spaced = false;  ///< white space or a comment stands before it
  std::int32_t line = 1;
  std::string_view text;

  bool is(char c) const noexcept { return kind == TokenKind::punct && punct == c; }
  bool is_dotted(std::string_view word) const noexcept {
    return kind == TokenKind::dotted && text == word;
  }
  bool is_word(std::string_view word) const noexcept {
    return kind == TokenKind::word && text == word;
  }
};

/// Returns tokens one after the other, with two tokens of look-ahead. The text must outlive it.
/// Throws PtxError on a character unknown to PTX, an open comment or an open string.
class Lexer {
 public:
  explicit Lexer(std::string_view text, std::int32_t first_line = 1);

  const Token& peek() const noexcept { return current_; }
  const Token& peek_next() const noexcept { return ahead_; }
  /// Returns the current token and moves on.
  Token take();

 private:
  Token scan();
  bool skip_blank();
  Token scan_string();
  Token scan_number();
  std::size_t word_end(std::size_t from) const noexcept;
  std::size_t dotted_end(std::size_t from) const noexcept;

  std::string_view text_;
  std::size_t position_ = 0;
  std::int32_t line_;
  Token current_, ahead_;
};

}  // namespace kernwright::sim::ptx
