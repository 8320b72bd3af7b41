// Registers: their declarations, and the parts of vector ones (q.x).
//
// A vector register is two or four registers side by side. Alone its name stands for all of them,
// as braces around them would.
#include "sim/ptx/parse/parser_state.h"

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

std::string full_name(const Register& reg) {
  std::string name(reg.name);
  if (reg.number >= 0) name += std::to_string(reg.number);
  if (reg.part != '\0') name.append(1, '.').append(1, reg.part);
  return name;
}

void Parser::parse_registers() {
  Type type = Type::none;
  std::uint8_t parts = 1;
  while (lexer_.peek().kind == TokenKind::dotted) {
    const Token word = lexer_.take();
    if (word.text == "align") {
      take_count("the alignment", kMaxAlignment);
      continue;
    }
    const bool is_vector = word.text == "v2" || word.text == "v4";
    if (is_vector && parts == 1 && type == Type::none) {
      parts = static_cast<std::uint8_t>(word.text[1] - '0');
      continue;
    }
    const Type found = type_from_name(word.text);
    const bool fits = found == Type::pred || bits(found) >= 8;
    if (type != Type::none || !fits) fail_at(word.line, format(".{} is no type here", word.text));
    type = found;
  }
  if (type == Type::none) fail("the registers have no type");
  if (parts > 1 && type == Type::pred) fail("predicates make no vectors");
  if (bits(type) * parts > 128) fail("a vector register of more than 128 bits");
  do {
    parse_register_name(type, parts);
  } while (accept(','));
  expect(';', "after the registers");
}

void Parser::parse_register_name(Type type, std::uint8_t parts) {
  std::vector<Register>& registers = function().registers;
  const std::string_view base = take_word("the name of a register");
  const auto first = static_cast<std::uint32_t>(registers.size());
  std::uint64_t count = 1;
  bool is_new = true;
  const bool is_range = accept('<');
  if (is_range) {
    count = take_count("the number of registers", kMaxRegisters);
    expect('>', "after the number of registers");
    is_new = scopes_.declare_range(base, static_cast<std::uint32_t>(count), first, parts);
  } else {
    is_new = scopes_.declare(base, {LocalName::Kind::reg, first, parts});
  }
  if (!is_new) fail(format("{} is declared twice", base));
  register_total_ += count * parts;
  if (registers.size() + count * parts > kMaxRegisters || register_total_ > kMaxModuleRegisters) {
    fail(format("{} has more than {} registers", function().name, kMaxRegisters));
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    for (std::uint8_t part = 0; part < parts; ++part)
      registers.push_back({base, type, is_range ? static_cast<std::int32_t>(i) : -1,
                           parts > 1 ? "xyzw"[part] : '\0'});
  }
}

std::uint32_t Parser::take_register(std::string_view what) {
  const std::string_view name = take_word(what);
  const std::optional<LocalName> found = scopes_.find(name);
  if (!found || found->kind != LocalName::Kind::reg) {
    fail(format("{} is not a declared register", name));
  }
  if (found->parts > 1) fail(format("{} is a vector register: {} is one", name, what));
  return found->index;
}

// What stands behind the name of a vector register: a part of it, or nothing.
Operand Parser::parse_part(std::string_view name, LocalName vector) {
  Operand operand;
  operand.kind = OperandKind::reg;
  if (lexer_.peek().kind == TokenKind::dotted) {
    const std::string_view text = lexer_.take().text;
    const int part = part_index(text);
    if (part < 0 || part >= vector.parts) {
      fail(format("{} of {} parts has no part .{}", name, vector.parts, text.substr(0, 60)));
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
Operand Parser::parse_special(std::string_view name) {
  Operand operand;
  operand.kind = OperandKind::special;
  std::string full(name);
  const bool has_part = lexer_.peek().kind == TokenKind::dotted;
  if (has_part) {
    const std::string_view text = lexer_.take().text;
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
      fail(format("{} is neither a declared register nor a special one", full.substr(0, 60)));
    }
    whole.elements.push_back(operand);
  }
  return whole;
}

}  // namespace kernwright::sim::ptx
