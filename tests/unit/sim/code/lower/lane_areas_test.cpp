// Areas of a frame: the blocks of a device function, and variables of calls when they are needed.
#include "sim/code/lower/lane_areas.h"

#include "unit/sim/ptx/ptx_fixture.h"

namespace kernwright::sim::testing {
namespace {

constexpr const char* kFunction =
    ".func (.param .b32 rv) f(.param .b64 fp, .param .b32 fq) {\n"
    ".param .b64 a; .param .align 8 .b8 b[20]; .reg .b32 %r<3>; .local .b32 lv; ret;\n}\n"
    ".entry k(.param .b64 kp) { .param .b64 a; ret; }\n";

/// Areas of one function of kFunction.
struct AreasOf {
  explicit AreasOf(std::size_t index)
      : module(ptx::testing::parse_module(kFunction)),
        layout(lay_out(*module)),
        function(module->functions[index]),
        areas(lowered, function, layout.functions[index]) {}

  ptx::Operand named(ptx::SymbolKind kind, std::uint32_t index) const {
    ptx::Operand operand;
    operand.symbol_kind = kind;
    operand.symbol_index = index;
    return operand;
  }

  std::unique_ptr<ptx::Module> module;
  ModuleLayout layout;
  const ptx::Function& function;
  Lowered lowered;
  LaneAreas areas;
};

TEST_CASE("lane areas: a device function begins with its parameters and its results") {
  AreasOf device(0), kernel(1);
  REQUIRE(device.lowered.areas.size() == 2);
  CHECK(device.areas.at(kParameterArea).bytes == 12);
  CHECK(device.areas.at(kReturnArea).bytes == 4);
  CHECK(kernel.lowered.areas.empty());
}

TEST_CASE("lane areas: each variable of a call has one area, padded to 16 bytes a lane") {
  AreasOf device(0);
  const std::uint32_t second = device.areas.variable_area(1);
  CHECK(second == 2);
  CHECK(device.areas.at(second).bytes == 20);
  CHECK(device.areas.at(second).stride == 32);
  CHECK(device.areas.variable_area(0) == 3);
  CHECK(device.areas.variable_area(1) == second);
  CHECK(device.areas.at(device.areas.add(0)).stride == 16);
}

TEST_CASE("lane areas: parameters, results and variables have places, other symbols have none") {
  using ptx::SymbolKind;
  AreasOf device(0), kernel(1);
  const auto parameter = device.areas.place(device.named(SymbolKind::parameter, 1));
  REQUIRE(parameter);
  CHECK(parameter->area == kParameterArea);
  CHECK(parameter->offset == 8);
  CHECK(parameter->stride == 16);
  const auto result = device.areas.place(device.named(SymbolKind::result, 0));
  REQUIRE(result);
  CHECK(result->area == kReturnArea);
  const auto variable = device.areas.place(device.named(SymbolKind::variable, 1));
  REQUIRE(variable);
  CHECK(variable->area == device.areas.variable_area(1));
  CHECK_FALSE(device.areas.place(device.named(SymbolKind::variable, 2)));
  CHECK_FALSE(kernel.areas.place(kernel.named(SymbolKind::parameter, 0)));
  CHECK(kernel.areas.place(kernel.named(SymbolKind::variable, 0)));
}

}  // namespace
}  // namespace kernwright::sim::testing
