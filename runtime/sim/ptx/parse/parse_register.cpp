// Declarations of registers.
#include "sim/ptx/parse/parser_state.h"

#include <string>

namespace kernwright::sim::ptx {
std::string full_name(const Register& reg) {
  std::string name(reg.name);
  if (reg.number >= 0) name += std::to_string(reg.number);
  if (reg.part != '\0') name.append(1, '.').append(1, reg.part);
  return name;
}

void Parser::parse_registers() {
  Type type = Type::none;
  std::uint8_t parts = 1;
  while (reader_.peek().kind == TokenKind::dotted) {
    const Token word = reader_.take();
    if (word.text == "align") {
      reader_.take_count("the alignment", kMaxAlignment);
      continue;
    }
    const bool is_vector = word.text == "v2" || word.text == "v4";
    if (is_vector && parts == 1 && type == Type::none) {
      parts = static_cast<std::uint8_t>(word.text[1] - '0');
      continue;
    }
    const Type found = type_from_name(word.text);
    const bool fits = found == Type::pred || bits(found) >= 8;
    if (type != Type::none || !fits)
      reader_.fail_at(word.line, format(".{} is no type here", word.text));
    type = found;
  }
  if (type == Type::none) reader_.fail("the registers have no type");
  if (parts > 1 && type == Type::pred) reader_.fail("predicates make no vectors");
  if (bits(type) * parts > 128) reader_.fail("a vector register of more than 128 bits");
  do {
    parse_register_name(type, parts);
  } while (reader_.accept(','));
  reader_.expect(';', "after the registers");
}

void Parser::parse_register_name(Type type, std::uint8_t parts) {
  std::vector<Register>& registers = function().registers;
  const std::string_view base = reader_.take_word("the name of a register");
  const auto first = static_cast<std::uint32_t>(registers.size());
  std::uint64_t count = 1;
  bool is_new = true;
  const bool is_range = reader_.accept('<');
  if (is_range) {
    count = reader_.take_count("the number of registers", kMaxRegisters);
    reader_.expect('>', "after the number of registers");
    is_new = scopes_.declare_range(base, static_cast<std::uint32_t>(count), first, parts);
  } else {
    is_new = scopes_.declare(base, {LocalName::Kind::reg, first, parts});
  }
  if (!is_new) reader_.fail(format("{} is declared twice", base));
  register_total_ += count * parts;
  if (registers.size() + count * parts > kMaxRegisters || register_total_ > kMaxModuleRegisters) {
    reader_.fail(format("{} has more than {} registers", function().name, kMaxRegisters));
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    for (std::uint8_t part = 0; part < parts; ++part)
      registers.push_back({base, type, is_range ? static_cast<std::int32_t>(i) : -1,
                           parts > 1 ? "xyzw"[part] : '\0'});
  }
}

}  // namespace kernwright::sim::ptx
