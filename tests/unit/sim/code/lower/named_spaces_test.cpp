// Instructions with names of a state space, and accesses out of its reach.
#include "sim/code/lower/named_spaces.h"

#include "unit/sim/ptx/ptx_fixture.h"

namespace kernwright::sim::testing {
namespace {

using ptx::Space;

/// The one instruction of a kernel or a device function, and the facts about names.
struct Named {
  explicit Named(const std::string& instruction, bool is_entry = true)
      : module(ptx::testing::parse_module(
            ".global .align 8 .b8 gv[64]; .const .align 8 .b8 cv[64];\n" +
            std::string(is_entry ? ".entry k" : ".func f") +
            "(.param .b64 p) { .reg .b64 %d<9>; .local .align 8 .b8 lv[64];\n"
            ".shared .align 8 .b8 sv[64];\n" +
            instruction + "\n}\n")),
        layout(lay_out(*module)),
        context{*module, layout, symbols, tables},
        spaces(context, module->functions[0]) {}

  const ptx::Instruction& written() const { return module->functions[0].body[0]; }
  std::string refusal() const {
    return ptx::testing::error_of([&] { spaces.check(written()); });
  }

  std::unique_ptr<ptx::Module> module;
  ModuleLayout layout;
  SymbolAddresses symbols;
  Program::Tables tables;
  LoweringContext context;
  NamedSpaces spaces;
};

TEST_CASE("named spaces: a generic access by name is one in the space of the name") {
  const auto space_of = [](const std::string& instruction, bool is_entry = true) {
    const Named named(instruction, is_entry);
    named.spaces.check(named.written());
    return named.spaces.in_its_space(named.written()).modifiers.space;
  };
  CHECK(space_of("ld.b64 %d1, [sv+8];") == Space::shared);
  CHECK(space_of("st.b64 [lv], %d1;") == Space::local);
  CHECK(space_of("ld.b64 %d1, [gv];") == Space::generic);
  CHECK(space_of("ld.global.b64 %d1, [gv];") == Space::global);
  // A device function's parameters are copied into local memory.
  CHECK(space_of("ld.param.b64 %d1, [p];", false) == Space::local);
  CHECK(space_of("ld.param.b64 %d1, [p];") == Space::param);
}

TEST_CASE("named spaces: the instruction as written stays what it is") {
  const Named named("ld.b64 %d1, [sv];");
  CHECK(&named.spaces.in_its_space(named.written()) != &named.written());
  CHECK(named.written().modifiers.space == Space::generic);
  CHECK(named.tables.rewritten.size() == 1);
}

TEST_CASE("named spaces: another state space than that of the name is refused with both") {
  using ptx::testing::contains;
  CHECK(contains(Named("ld.shared.b64 %d1, [gv];").refusal(),
                 "gv lies in .global, which this instruction does not reach by a name"));
  CHECK(contains(Named("ld.global.b64 %d1, [sv];").refusal(), "sv lies in .shared"));
  CHECK(contains(Named("ld.b64 %d1, [cv];").refusal(), "cv lies in .const"));
  CHECK(contains(Named("ld.b64 %d1, [p];").refusal(), "p lies in .param"));
  CHECK(contains(Named("ld.b64 %d1, [k];").refusal(), "k is a function, not a place in memory"));
}

}  // namespace
}  // namespace kernwright::sim::testing
