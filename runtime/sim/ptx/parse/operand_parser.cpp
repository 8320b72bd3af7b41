// Operands, and the parts of vector registers (q.x).
//
// A vector register is two or four registers side by side. Alone its name stands for all of them,
// as braces around them would.
#include "sim/ptx/parse/operand_parser.h"

#include "base/format.h"
#include "sim/ptx/parse/constant_expression.h"

#include <optional>
#include <string>

namespace kernwright::sim::ptx {
namespace {

/// x to w, or r, g, b and a: 0 to 3; -1 for other names.
int part_index(std::string_view name) noexcept {
  if (name.size() != 1) return -1;
  const std::size_t found = std::string_view("xyzwrgba").find(name[0]);
  return found == std::string_view::npos ? -1 : static_cast<int>(found % 4);
}

}  // namespace

Operand OperandParser::any() {
  const Token& token = reader_.peek();
  if (token.is('{')) return vector();
  if (token.is('!') && reader_.peek_next().kind == TokenKind::word) {
    reader_.take();
    Operand operand;
    operand.kind = OperandKind::reg;
    operand.negated = true;
    operand.reg = take_register("a predicate");
    return operand;
  }
  if (token.kind == TokenKind::word && token.text != "WARP_SZ") return name();
  return constant();
}

Operand OperandParser::pair(std::uint32_t first) {
  Operand operand;
  operand.kind = OperandKind::reg_pair;
  operand.reg = first;
  if (reader_.peek().is_word("_")) {
    reader_.take();
    if (first == kNoRegister) reader_.fail("_|_ names no register");
    operand.kind = OperandKind::reg;
  } else {
    operand.reg2 = take_register("the second register of a pair");
  }
  return operand;
}

// A register, pair, special register, symbol (with offset) or the sink.
Operand OperandParser::name() {
  Operand operand;
  const std::string_view name = reader_.take_word("an operand");
  if (name == "_") {
    if (reader_.accept('|')) return pair(kNoRegister);
    operand.kind = OperandKind::sink;
    return operand;
  }
  const std::optional<LocalName> local = scopes_.find(name);
  if (local && local->kind == LocalName::Kind::reg) {
    if (local->parts > 1) return parse_part(name, *local);
    if (reader_.accept('|')) return pair(local->index);
    operand.kind = OperandKind::reg;
    operand.reg = local->index;
    return operand;
  }
  if (!local && name.front() == '%') return special(name);
  operand.kind = OperandKind::symbol;
  operand.symbol = name;
  resolve_local(name, operand);
  if (reader_.peek().is('+') || reader_.peek().is('-')) operand.offset = read_offset(reader_);
  return operand;
}

bool OperandParser::resolve_local(std::string_view name, Operand& operand) const {
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
  return search(function_->params, SymbolKind::parameter) ||
         search(function_->returns, SymbolKind::result);
}

Operand OperandParser::label(std::uint32_t operand_index) {
  Operand operand;
  operand.kind = OperandKind::label;
  PendingLabel pending;
  pending.instruction = static_cast<std::uint32_t>(function_->body.size());
  pending.operand = operand_index;
  pending.line = reader_.peek().line;
  pending.name = reader_.take_word("a label");
  scopes_.wait_for(pending);
  return operand;
}

Operand OperandParser::constant() {
  const Literal literal = read_constant(reader_);
  Operand operand;
  operand.bits = literal.bits;
  operand.kind = literal.type == Type::f32   ? OperandKind::float32
                 : literal.type == Type::f64 ? OperandKind::float64
                                             : OperandKind::integer;
  return operand;
}

Operand OperandParser::vector() {
  Operand vector;
  vector.kind = OperandKind::vector;
  reader_.expect('{', "before a vector");
  do {
    if (reader_.peek().is('{')) reader_.fail("a vector inside a vector");
    vector.elements.push_back(any());
    const Operand& element = vector.elements.back();
    if (element.kind == OperandKind::symbol)
      reader_.fail(format("{} is no register", element.symbol));
    if (element.kind == OperandKind::vector) reader_.fail("a vector inside a vector");
  } while (reader_.accept(','));
  reader_.expect('}', "after a vector");
  if (reader_.accept('|')) {
    Operand& predicate = vector.elements.emplace_back();
    predicate.kind = OperandKind::reg;
    predicate.reg = take_register("the predicate of a vector");
    vector.has_predicate = true;
  }
  return vector;
}

Operand OperandParser::address(Instruction& instruction) {
  Operand operand;
  operand.kind = OperandKind::address;
  reader_.expect('[', "before an address");
  const Token& token = reader_.peek();
  if (token.kind == TokenKind::word && token.text != "WARP_SZ") {
    const std::string_view name = reader_.take().text;
    const std::optional<LocalName> local = scopes_.find(name);
    if (local && local->kind == LocalName::Kind::reg) {
      operand.base = OperandKind::reg;
      operand.reg = local->index;
      const int width = bits(function_->registers[local->index].type);
      if ((width != 32 && width != 64) || local->parts > 1)
        reader_.fail(format("{} holds no address", name));
    } else {
      if (name.front() == '%') reader_.fail(format("{} is not a declared register", name));
      operand.base = OperandKind::symbol;
      operand.symbol = name;
      resolve_local(name, operand);
    }
    if (reader_.peek().is('+') || reader_.peek().is('-')) operand.offset = read_offset(reader_);
  } else {
    const Literal literal = read_constant(reader_);
    if (literal.is_float()) reader_.fail("an address is a floating-point number");
    operand.base = OperandKind::integer;
    operand.offset = static_cast<std::int64_t>(literal.bits);
  }
  if (reader_.accept(',')) {  // coordinates within a tensor or texture
    Operand coordinates = any();
    operand.bare = coordinates.kind != OperandKind::vector;
    if (coordinates.has_predicate) reader_.fail("a predicate beside coordinates");
    if (!operand.bare) {
      operand.elements = std::move(coordinates.elements);
    } else {
      operand.elements.push_back(std::move(coordinates));
    }
  }
  reader_.expect(']', "after an address");
  if (reader_.accept_dotted("unified")) instruction.modifiers.unified = true;
  return operand;
}

std::uint32_t OperandParser::take_register(std::string_view what) {
  const std::string_view name = reader_.take_word(what);
  const std::optional<LocalName> found = scopes_.find(name);
  if (!found || found->kind != LocalName::Kind::reg) {
    reader_.fail(format("{} is not a declared register", name));
  }
  if (found->parts > 1) reader_.fail(format("{} is a vector register: {} is one", name, what));
  return found->index;
}

// The text after the name of a vector register: a part of it, or nothing.
Operand OperandParser::parse_part(std::string_view name, LocalName vector) {
  Operand operand;
  operand.kind = OperandKind::reg;
  if (reader_.peek().kind == TokenKind::dotted) {
    const std::string_view text = reader_.take().text;
    const int part = part_index(text);
    if (part < 0 || part >= vector.parts) {
      reader_.fail(
          format("{} of {} parts has no part .{}", name, vector.parts, text.substr(0, 60)));
    }
    operand.reg = vector.index + static_cast<std::uint32_t>(part);
    return operand;
  }
  Operand whole;
  whole.kind = OperandKind::vector;
  whole.unbraced = true;
  for (std::uint32_t i = 0; i < vector.parts; ++i) {
    operand.reg = vector.index + i;
    whole.elements.push_back(operand);
  }
  return whole;
}

// %tid.x, %laneid; %tid alone is a vector of four. `name` was taken already.
Operand OperandParser::special(std::string_view name) {
  Operand operand;
  operand.kind = OperandKind::special;
  std::string full(name);
  const bool has_part = reader_.peek().kind == TokenKind::dotted;
  if (has_part) {
    const std::string_view text = reader_.take().text;
    const int part = part_index(text);
    full += '.';
    if (part < 0) full += text;
    if (part >= 0) full += "xyzw"[part];
  }
  operand.special = special_from_name(full);
  if (operand.special != SpecialRegister::none) return operand;
  Operand whole;
  whole.kind = OperandKind::vector;
  whole.unbraced = true;
  for (const char* part : {".x", ".y", ".z", ".w"}) {
    operand.special = special_from_name(full + part);
    if (has_part || operand.special == SpecialRegister::none) {
      reader_.fail(
          format("{} is neither a declared register nor a special one", full.substr(0, 60)));
    }
    whole.elements.push_back(operand);
  }
  return whole;
}

}  // namespace kernwright::sim::ptx
