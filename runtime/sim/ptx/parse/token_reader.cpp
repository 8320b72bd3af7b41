// Expecting, accepting and refusing the next token.
#include "sim/ptx/parse/token_reader.h"

#include "base/format.h"
#include "sim/ptx/parse/literal.h"
#include "sim/ptx/parse/parser.h"

#include <optional>
#include <utility>

namespace kernwright::sim::ptx {

std::string describe(const Token& token) {
  if (token.kind == TokenKind::end) return "the end of the text";
  return format("'{}{}'", token.kind == TokenKind::dotted ? "." : "", token.text.substr(0, 60));
}

TokenReader::TokenReader(Module& module) : module_(module), lexer_(module.text), lines_(module) {}

void TokenReader::enter_function() {
  in_function_ = true;
  lines_.reset();
}

void TokenReader::fail(const std::string& what) const { fail_at(lexer_.peek().line, what); }

void TokenReader::fail_at(std::int32_t line, const std::string& what) const {
  fail_in(line, in_function_ ? lines_.current() : SourceLine{}, {}, what);
}

void TokenReader::fail_opcode(const Instruction& instruction, const std::string& what) const {
  fail_in(instruction.ptx_line, instruction.source, std::string(instruction.opcode), what);
}

void TokenReader::fail_in(std::int32_t line, SourceLine source, std::string opcode,
                          const std::string& what) const {
  const auto index = static_cast<std::size_t>(source.file);
  const std::string file = index < module_.files.size() ? module_.files[index] : std::string();
  const std::string place = source.line > 0 ? format(" ({}:{})", file, source.line) : std::string();
  throw PtxError(format("PTX line {}{}: {}", line, place, what), line, source, std::move(opcode),
                 file);
}

void TokenReader::expect(char punct, std::string_view after) {
  if (accept(punct)) return;
  fail(format("expected '{}' {} but found {}", punct, after, describe(lexer_.peek())));
}

bool TokenReader::accept(char punct) {
  if (!lexer_.peek().is(punct)) return false;
  lexer_.take();
  return true;
}

bool TokenReader::accept_dotted(std::string_view word) {
  if (!lexer_.peek().is_dotted(word)) return false;
  lexer_.take();
  return true;
}

void TokenReader::skip_attribute() {
  expect('(', "after .attribute");
  while (!accept(')')) {
    if (lexer_.peek().kind == TokenKind::end) fail("the attribute is not closed");
    lexer_.take();
  }
}

std::string_view TokenReader::take_word(std::string_view what) {
  if (lexer_.peek().kind != TokenKind::word) {
    fail(format("expected {} but found {}", what, describe(lexer_.peek())));
  }
  return lexer_.take().text;
}

std::uint64_t TokenReader::take_count(std::string_view what, std::uint64_t limit) {
  if (lexer_.peek().kind != TokenKind::number) {
    fail(format("expected {} but found {}", what, describe(lexer_.peek())));
  }
  const std::optional<Literal> literal = parse_literal(lexer_.peek().text);
  if (!literal || literal->is_float() || literal->bits > limit) {
    fail(format("{} is {}, which is not a number up to {}", what, lexer_.peek().text, limit));
  }
  lexer_.take();
  return literal->bits;
}

}  // namespace kernwright::sim::ptx
