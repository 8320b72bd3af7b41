// Operands by the names that are declared around them.
#include "sim/ptx/parse/operand_parser.h"

#include "unit/sim/ptx/ptx_fixture.h"

namespace kernwright::sim::ptx::testing {
namespace {

/// %r0 to %r3 of 32 bits, %l of 64, %q a vector of two, a variable v and a parameter p.
struct Operands {
  explicit Operands(std::string text) : reader((module.text = std::move(text), module)) {
    for (int i = 0; i < 4; ++i) function.registers.push_back({"%r", Type::b32, i, '\0'});
    function.registers.push_back({"%l", Type::b64, -1, '\0'});
    for (const char part : {'x', 'y'}) function.registers.push_back({"%q", Type::b32, -1, part});
    function.params.emplace_back().name = "p";
    scopes.push();
    scopes.declare_range("%r", 4, 0, 1);
    scopes.declare("%l", {LocalName::Kind::reg, 4});
    scopes.declare("%q", {LocalName::Kind::reg, 5, 2});
    scopes.declare("v", {LocalName::Kind::variable, 0});
    parser.enter(function);
  }
  std::string error() {
    return error_of([&] { parser.any(); });
  }

  Module module;
  TokenReader reader;
  Function function;
  ScopeStack scopes;
  OperandParser parser{reader, scopes};
  Instruction instruction;
};

TEST_CASE("operand parser: registers, pairs, negation and the sink") {
  Operands text("%r2 %r1|%r3 !%r0 _ _|%r1");
  CHECK(text.parser.any().reg == 2);
  const Operand pair = text.parser.any();
  CHECK(pair.kind == OperandKind::reg_pair);
  CHECK(pair.reg == 1);
  CHECK(pair.reg2 == 3);
  CHECK(text.parser.any().negated);
  CHECK(text.parser.any().kind == OperandKind::sink);
  CHECK(text.parser.any().reg == kNoRegister);
}

TEST_CASE("operand parser: a vector register is its parts, with or without braces") {
  Operands text("%q.y %q {%r0, %r1}|%r2 %tid.x");
  CHECK(text.parser.any().reg == 6);
  const Operand whole = text.parser.any();
  CHECK(whole.unbraced);
  REQUIRE(whole.elements.size() == 2);
  CHECK(whole.elements[0].reg == 5);
  const Operand braces = text.parser.any();
  CHECK(braces.has_predicate);
  CHECK(braces.elements.size() == 3);
  CHECK(text.parser.any().special == SpecialRegister::tid_x);
}

TEST_CASE("operand parser: names of variables and parameters are known, others stay symbols") {
  Operands text("v+4 p elsewhere 2*3 0f3f800000");
  const Operand variable = text.parser.any();
  CHECK(variable.symbol_kind == SymbolKind::variable);
  CHECK(variable.offset == 4);
  CHECK(text.parser.any().symbol_kind == SymbolKind::parameter);
  CHECK(text.parser.any().symbol_kind == SymbolKind::none);
  CHECK(text.parser.any().bits == 6);
  CHECK(text.parser.any().kind == OperandKind::float32);
}

TEST_CASE("operand parser: addresses of registers, names and numbers, with coordinates") {
  Operands text("[%l+-8] [v] [64] [%l, {%r0, %r1}] [%q]");
  const Operand reg = text.parser.address(text.instruction);
  CHECK(reg.base == OperandKind::reg);
  CHECK(reg.offset == -8);
  CHECK(text.parser.address(text.instruction).symbol_kind == SymbolKind::variable);
  CHECK(text.parser.address(text.instruction).offset == 64);
  CHECK(text.parser.address(text.instruction).elements.size() == 2);
  CHECK(contains(error_of([&] { text.parser.address(text.instruction); }), "holds no address"));
}

TEST_CASE("operand parser: undeclared names are told") {
  CHECK(contains(Operands("%x").error(), "neither a declared register nor a special one"));
  CHECK(contains(Operands("!v").error(), "v is not a declared register"));
  CHECK(contains(Operands("%q.w").error(), "%q of 2 parts has no part .w"));
  CHECK(contains(Operands("{{%r0}}").error(), "a vector inside a vector"));
}

}  // namespace
}  // namespace kernwright::sim::ptx::testing
