// From the text of an expression to its words.
#pragma once

#include "tune/value.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace kernwright {

struct ExpressionToken {
  enum class Kind : std::uint8_t { end, symbol, word, number, text };

  Kind kind = Kind::end;
  std::size_t position = 0;  ///< in the text, from 0
  std::string_view spelling;
  Value value = false;  ///< of a number or a text
};

/// Throws InvalidArgument: the mistake, the text, the column counted from 1.
[[noreturn]] void fail_in_expression(std::string_view text, std::size_t position,
                                     const std::string& what);

/// Reads one word after the other. The text must outlive it.
class ExpressionLexer {
 public:
  explicit ExpressionLexer(std::string_view text) : text_(text) { advance(); }

  const ExpressionToken& token() const { return token_; }
  std::string_view text() const { return text_; }
  void advance();

 private:
  void read_number();
  void read_string();
  void read_symbol();
  Value integer_value(std::string_view digits, int base) const;

  std::string_view text_;
  std::size_t at_ = 0;
  ExpressionToken token_;
};

}  // namespace kernwright
