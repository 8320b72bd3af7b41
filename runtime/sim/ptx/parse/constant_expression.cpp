// Precedence climbing over the operators of constant expressions.
#include "sim/ptx/parse/constant_expression.h"

#include "base/format.h"
#include "sim/ptx/parse/limits.h"

#include <array>
#include <optional>

namespace kernwright::sim::ptx {
namespace {

struct BinaryOperator {
  char mark;
  int precedence;
};

constexpr std::array<BinaryOperator, 8> kOperators{
    {{'|', 1}, {'^', 2}, {'&', 3}, {'<', 4}, {'>', 4}, {'+', 5}, {'-', 5}, {'*', 6}}};

int token_precedence(const Token& token) {
  if (token.is('/')) return 6;
  for (const BinaryOperator& candidate : kOperators) {
    if (token.is(candidate.mark)) return candidate.precedence;
  }
  return 0;
}

std::uint64_t shift_right(std::uint64_t value, std::uint64_t count, bool is_signed) {
  if (is_signed) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value) >>
                                      (count > 63 ? 63 : count));
  }
  return count > 63 ? 0 : value >> count;
}

std::optional<std::uint64_t> divide(std::uint64_t left, std::uint64_t right, bool is_signed) {
  if (right == 0) return std::nullopt;
  if (!is_signed) return left / right;
  if (right == ~std::uint64_t{0}) return 0 - left;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(left) /
                                    static_cast<std::int64_t>(right));
}

Literal expression(TokenReader& reader, int depth, int precedence);

Literal unary(TokenReader& reader, int depth) {
  if (depth > kMaxExpressionDepth) reader.fail("an expression is nested too deeply");
  if (reader.accept('-')) return negate(unary(reader, depth + 1));
  if (reader.accept('+')) return unary(reader, depth + 1);
  if (reader.accept('~') || reader.peek().is('!')) {
    const bool logical = reader.accept('!');
    Literal value = unary(reader, depth + 1);
    if (value.is_float()) reader.fail("a bit operation on a floating-point number");
    value.bits = logical ? std::uint64_t{value.bits == 0} : ~value.bits;
    return value;
  }
  if (reader.accept('(')) {
    const Literal value = expression(reader, depth + 1, 0);
    reader.expect(')', "in an expression");
    return value;
  }
  if (reader.peek().is_word("WARP_SZ")) {
    reader.take();
    return {Type::s64, 32};
  }
  const Token token = reader.peek();
  if (token.kind != TokenKind::number) {
    reader.fail(format("expected a value but found '{}'", token.text.substr(0, 60)));
  }
  const std::optional<Literal> literal = parse_literal(token.text);
  if (!literal)
    reader.fail(format("{} is not a number that fits into 64 bits", token.text.substr(0, 60)));
  reader.take();
  return *literal;
}

Literal expression(TokenReader& reader, int depth, int precedence) {
  Literal left = unary(reader, depth);
  for (;;) {
    const Token mark = reader.peek();
    const int strength = token_precedence(mark);
    if (strength == 0 || strength <= precedence) return left;
    reader.take();
    const bool is_shift = mark.is('<') || mark.is('>');
    if (is_shift && !reader.accept(mark.punct))
      reader.fail("a comparison in an expression is not simulated");
    const Literal right = expression(reader, depth + 1, strength);
    if (left.is_float() || right.is_float())
      reader.fail("an expression over floating-point numbers");
    const bool is_signed = left.type == Type::s64 && (is_shift || right.type == Type::s64);
    std::optional<std::uint64_t> value;
    switch (mark.punct) {
      case '|': value = left.bits | right.bits; break;
      case '^': value = left.bits ^ right.bits; break;
      case '&': value = left.bits & right.bits; break;
      case '+': value = left.bits + right.bits; break;
      case '-': value = left.bits - right.bits; break;
      case '*': value = left.bits * right.bits; break;
      case '<': value = right.bits > 63 ? 0 : left.bits << right.bits; break;
      case '>': value = shift_right(left.bits, right.bits, is_signed); break;
      default: value = divide(left.bits, right.bits, is_signed); break;
    }
    if (!value) reader.fail_at(mark.line, "an expression divides by zero");
    left = {is_signed ? Type::s64 : Type::u64, *value};
  }
}

}  // namespace

Literal read_constant(TokenReader& reader) { return expression(reader, 0, 0); }

std::int64_t read_offset(TokenReader& reader) {
  reader.accept('+');
  const Literal literal = read_constant(reader);
  if (literal.is_float()) reader.fail("an offset is a floating-point number");
  return static_cast<std::int64_t>(literal.bits);
}

}  // namespace kernwright::sim::ptx
