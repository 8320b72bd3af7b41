// Operands: registers, pairs, vectors, addresses, labels and constant expressions.
#include "sim/ptx/parse/parser_state.h"

#include <array>

namespace kernwright::sim::ptx {

Operand Parser::parse_operand() {
  const Token& token = lexer_.peek();
  if (token.is('{')) return parse_vector();
  if (token.is('!') && lexer_.peek_next().kind == TokenKind::word) {
    lexer_.take();
    Operand operand;
    operand.kind = OperandKind::reg;
    operand.negated = true;
    operand.reg = take_register("a predicate");
    return operand;
  }
  if (token.kind == TokenKind::word && token.text != "WARP_SZ") return parse_name_operand();
  return parse_constant_operand();
}

Operand Parser::parse_pair(std::uint32_t first) {
  Operand operand;
  operand.kind = OperandKind::reg_pair;
  operand.reg = first;
  if (lexer_.peek().is_word("_")) {
    lexer_.take();
    if (first == kNoRegister) fail("_|_ names no register");
    operand.kind = OperandKind::reg;
  } else {
    operand.reg2 = take_register("the second register of a pair");
  }
  return operand;
}

// A register, pair, special register, symbol (with offset) or the sink.
Operand Parser::parse_name_operand() {
  Operand operand;
  const std::string_view name = take_word("an operand");
  if (name == "_") {
    if (accept('|')) return parse_pair(kNoRegister);
    operand.kind = OperandKind::sink;
    return operand;
  }
  const std::optional<LocalName> local = scopes_.find(name);
  if (local && local->kind == LocalName::Kind::reg) {
    if (local->parts > 1) return parse_part(name, *local);
    if (accept('|')) return parse_pair(local->index);
    operand.kind = OperandKind::reg;
    operand.reg = local->index;
    return operand;
  }
  if (!local && name.front() == '%') return parse_special(name);
  operand.kind = OperandKind::symbol;
  operand.symbol = name;
  resolve_local(name, operand);
  if (lexer_.peek().is('+') || lexer_.peek().is('-')) operand.offset = parse_offset();
  return operand;
}

bool Parser::resolve_local(std::string_view name, Operand& operand) const {
  if (const auto local = scopes_.find(name); local && local->kind == LocalName::Kind::variable) {
    operand.symbol_kind = SymbolKind::variable;
    operand.symbol_index = local->index;
    return true;
  }
  const auto search = [&](const std::vector<Variable>& variables, SymbolKind kind) {
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (variables[i].name != name) continue;
      operand.symbol_kind = kind;
      operand.symbol_index = static_cast<std::uint32_t>(i);
      return true;
    }
    return false;
  };
  return search(function().params, SymbolKind::parameter) ||
         search(function().returns, SymbolKind::result);
}

Operand Parser::parse_label_operand(std::uint32_t operand_index) {
  Operand operand;
  operand.kind = OperandKind::label;
  PendingLabel pending;
  pending.instruction = static_cast<std::uint32_t>(function().body.size());
  pending.operand = operand_index;
  pending.line = lexer_.peek().line;
  pending.name = take_word("a label");
  scopes_.wait_for(pending);
  return operand;
}

Operand Parser::parse_constant_operand() {
  const Literal literal = parse_constant();
  Operand operand;
  operand.bits = literal.bits;
  operand.kind = literal.type == Type::f32   ? OperandKind::float32
                 : literal.type == Type::f64 ? OperandKind::float64
                                             : OperandKind::integer;
  return operand;
}

Operand Parser::parse_vector() {
  Operand vector;
  vector.kind = OperandKind::vector;
  expect('{', "before a vector");
  do {
    if (lexer_.peek().is('{')) fail("a vector inside a vector");
    vector.elements.push_back(parse_operand());
    const Operand& element = vector.elements.back();
    if (element.kind == OperandKind::symbol) fail(format("{} is no register", element.symbol));
    if (element.kind == OperandKind::vector) fail("a vector inside a vector");
  } while (accept(','));
  expect('}', "after a vector");
  if (accept('|')) {
    Operand& predicate = vector.elements.emplace_back();
    predicate.kind = OperandKind::reg;
    predicate.reg = take_register("the predicate of a vector");
    vector.with_predicate = true;
  }
  return vector;
}

Operand Parser::parse_address(Instruction& instruction) {
  Operand operand;
  operand.kind = OperandKind::address;
  expect('[', "before an address");
  const Token& token = lexer_.peek();
  if (token.kind == TokenKind::word && token.text != "WARP_SZ") {
    const std::string_view name = lexer_.take().text;
    const std::optional<LocalName> local = scopes_.find(name);
    if (local && local->kind == LocalName::Kind::reg) {
      operand.base = OperandKind::reg;
      operand.reg = local->index;
      const int width = bits(function().registers[local->index].type);
      if ((width != 32 && width != 64) || local->parts > 1)
        fail(format("{} holds no address", name));
    } else {
      if (name.front() == '%') fail(format("{} is not a declared register", name));
      operand.base = OperandKind::symbol;
      operand.symbol = name;
      resolve_local(name, operand);
    }
    if (lexer_.peek().is('+') || lexer_.peek().is('-')) operand.offset = parse_offset();
  } else {
    const Literal literal = parse_constant();
    if (literal.is_float()) fail("an address is a floating-point number");
    operand.base = OperandKind::integer;
    operand.offset = static_cast<std::int64_t>(literal.bits);
  }
  if (accept(',')) {  // coordinates within a tensor or texture
    Operand coordinates = parse_operand();
    operand.bare = coordinates.kind != OperandKind::vector;
    if (coordinates.with_predicate) fail("a predicate beside coordinates");
    if (!operand.bare) {
      operand.elements = std::move(coordinates.elements);
    } else {
      operand.elements.push_back(std::move(coordinates));
    }
  }
  expect(']', "after an address");
  if (accept_dotted("unified")) instruction.modifiers.unified = true;
  return operand;
}

// +constant or -constant; PTX writes `+-4` for negative ones.
std::int64_t Parser::parse_offset() {
  accept('+');
  const Literal literal = parse_constant();
  if (literal.is_float()) fail("an offset is a floating-point number");
  return static_cast<std::int64_t>(literal.bits);
}

Literal Parser::parse_unary(int depth) {
  if (depth > kMaxExpressionDepth) fail("an expression is nested too deeply");
  if (accept('-')) return negate(parse_unary(depth + 1));
  if (accept('+')) return parse_unary(depth + 1);
  if (accept('~') || lexer_.peek().is('!')) {
    const bool logical = accept('!');
    Literal value = parse_unary(depth + 1);
    if (value.is_float()) fail("a bit operation on a floating-point number");
    value.bits = logical ? std::uint64_t{value.bits == 0} : ~value.bits;
    return value;
  }
  if (accept('(')) {
    const Literal value = parse_constant(depth + 1);
    expect(')', "in an expression");
    return value;
  }
  if (lexer_.peek().is_word("WARP_SZ")) {
    lexer_.take();
    return {Type::s64, 32};
  }
  const Token token = lexer_.peek();
  if (token.kind != TokenKind::number) {
    fail(format("expected a value but found '{}'", token.text.substr(0, 60)));
  }
  const std::optional<Literal> literal = parse_literal(token.text);
  if (!literal) fail(format("{} is not a number that fits into 64 bits", token.text.substr(0, 60)));
  lexer_.take();
  return *literal;
}

namespace {

struct BinaryOperator {
  char mark;
  int precedence;
};

constexpr std::array<BinaryOperator, 8> kOperators{
    {{'|', 1}, {'^', 2}, {'&', 3}, {'<', 4}, {'>', 4}, {'+', 5}, {'-', 5}, {'*', 6}}};

int precedence_of(const Token& token) {
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

}  // namespace

// Precedence climbing over 64-bit integers, as PTX defines constant expressions.
Literal Parser::parse_constant(int depth, int precedence) {
  Literal left = parse_unary(depth);
  for (;;) {
    const Token mark = lexer_.peek();
    const int strength = precedence_of(mark);
    if (strength == 0 || strength <= precedence) return left;
    lexer_.take();
    const bool is_shift = mark.is('<') || mark.is('>');
    if (is_shift && !accept(mark.punct)) fail("a comparison in an expression is not simulated");
    const Literal right = parse_constant(depth + 1, strength);
    if (left.is_float() || right.is_float()) fail("an expression over floating-point numbers");
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
    if (!value) fail_at(mark.line, "an expression divides by zero");
    left = {is_signed ? Type::s64 : Type::u64, *value};
  }
}

}  // namespace kernwright::sim::ptx
