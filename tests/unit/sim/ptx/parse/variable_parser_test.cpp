// Variables: types, extents, initial values and parameters.
#include "sim/ptx/parse/variable_parser.h"

#include "unit/sim/ptx/ptx_fixture.h"

namespace kernwright::sim::ptx::testing {
namespace {

struct Declared {
  explicit Declared(std::string text) : reader((module.text = std::move(text), module)) {}
  Variable variable(Space space = Space::global, std::uint64_t limit = 1 << 20) {
    return parser.named(parser.declaration(space), limit);
  }
  std::string error(Space space = Space::global, std::uint64_t limit = 1 << 20) {
    return error_of([&] { variable(space, limit); });
  }

  Module module;
  TokenReader reader;
  VariableParser parser{reader};
};

TEST_CASE("variable parser: alignment, vector, type, name and extent") {
  const Variable variable = Declared(".align 16 .v4 .f32 table[2][3];").variable();
  CHECK(variable.name == "table");
  CHECK(variable.alignment == 16);
  CHECK(variable.vector == 4);
  CHECK(variable.type == Type::f32);
  CHECK(variable.count == 6);
  CHECK(variable.bytes() == 96);
  CHECK(variable.space == Space::global);
}

TEST_CASE("variable parser: initial values fill rows and give an open extent its size") {
  const Variable rows = Declared(".b32 a[][2] = {{1}, {2, 3}};").variable();
  CHECK(rows.count == 4);
  REQUIRE(rows.init.size() == 4);
  CHECK(rows.init[1].bits == 0);
  CHECK(rows.init[3].bits == 3);
  const Variable address = Declared(".u64 a = generic(b)+8;").variable();
  REQUIRE(address.init.size() == 1);
  CHECK(address.init[0].symbol == "b");
  CHECK(address.init[0].generic);
  CHECK(address.init[0].offset == 8);
}

TEST_CASE("variable parser: several of one declaration have extents of their own") {
  Declared both(".b8 a[4], b;");
  const Variable like = both.parser.declaration(Space::shared);
  CHECK(both.parser.named(like, 16).count == 4);
  CHECK(both.reader.accept(','));
  const Variable second = both.parser.named(like, 16);
  CHECK(second.count == 1);
  CHECK_FALSE(second.is_array);
}

TEST_CASE("variable parser: parameters, with what is said about their pointees") {
  Declared text("(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 q[12])");
  const std::vector<Variable> parameters = text.parser.parameters();
  REQUIRE(parameters.size() == 2);
  CHECK(parameters[0].name == "p");
  CHECK(parameters[1].bytes() == 12);
  CHECK(Declared("()").parser.parameters().empty());
  CHECK(contains(error_of([] { Declared("(.reg .b32 r)").parser.parameters(); }),
                 "parameters in registers are not simulated"));
}

TEST_CASE("variable parser: what cannot be stored is refused") {
  CHECK(contains(Declared(".pred a;").error(), "is no type of a variable"));
  CHECK(contains(Declared("a;").error(), "a variable has no type"));
  CHECK(contains(Declared(".align 3 .b8 a;").error(), "not a power of two"));
  CHECK(contains(Declared(".b8 a[17];").error(Space::global, 16), "more than the limit of 16"));
  CHECK(contains(Declared(".b32 a[1] = {1, 2};").error(), "has 1 elements but 2 initial values"));
  CHECK(contains(Declared(".b32 a = 1;").error(Space::shared), "have initial values"));
}

}  // namespace
}  // namespace kernwright::sim::ptx::testing
