// Tokens one after the other, and errors with the place in the text.
#pragma once

#include "sim/ptx/debug_lines.h"
#include "sim/ptx/parse/lexer.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace kernwright::sim::ptx {

/// "'.global'", or "the end of the text".
std::string describe(const Token& token);

/// Methods throw PtxError on failure.
class TokenReader {
 public:
  /// Reads the text of `module`, which must outlive it.
  explicit TokenReader(Module& module);

  const Token& peek() const noexcept { return lexer_.peek(); }
  const Token& peek_next() const noexcept { return lexer_.peek_next(); }
  Token take() { return lexer_.take(); }

  void expect(char punct, std::string_view after);
  /// Takes the next token if it is this one; returns whether it did.
  bool accept(char punct);
  bool accept_dotted(std::string_view word);
  /// After .attribute: skips the part in parentheses.
  void skip_attribute();
  std::string_view take_word(std::string_view what);
  std::uint64_t take_count(std::string_view what, std::uint64_t limit);

  /// Within a function errors tell the line of the source, too.
  void enter_function();
  void leave_function() { in_function_ = false; }
  LineTracker& lines() noexcept { return lines_; }

  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_at(std::int32_t line, const std::string& what) const;
  [[noreturn]] void fail_opcode(const Instruction& instruction, const std::string& what) const;

 private:
  [[noreturn]] void fail_in(std::int32_t line, SourceLine source, std::string opcode,
                            const std::string& what) const;

  const Module& module_;
  Lexer lexer_;
  LineTracker lines_;
  bool in_function_ = false;
};

}  // namespace kernwright::sim::ptx
