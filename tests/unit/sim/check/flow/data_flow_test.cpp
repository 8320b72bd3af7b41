// Basic blocks and writers of a function.
#include "sim/check/flow/data_flow.h"

#include "sim/ptx/parse/parser.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace kernwright::sim;

namespace {

using Numbers = std::vector<std::uint32_t>;

Outline outline(const std::string& body, Numbers& writers_of_r1) {
  const auto module = ptx::parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .pred %p<2>;\n"
      ".reg .b32 %r<4>;\n.reg .b64 %rd<2>;\n" +
      body + "\n}\n");
  const ptx::Function& function = module->functions[0];
  Outline made = make_outline(function);
  for (std::uint32_t reg = 0; reg < function.registers.size(); ++reg) {
    if (ptx::full_name(function.registers[reg]) == "%r1") writers_of_r1 = made.writers[reg];
  }
  return made;
}

}  // namespace

TEST_CASE("data flow: blocks end behind branches and before labels") {
  Numbers writers;
  CHECK(outline("ret;", writers).blocks == Numbers{0});
  CHECK(outline("mov.u32 %r0, 1;\nL:\nmov.u32 %r0, 2;\nret;", writers).blocks == Numbers{0, 1, 1});
  const Numbers branches =
      outline("@%p0 bra L;\nmov.u32 %r0, 1;\nL:\nmov.u32 %r0, 2;\nexit;\nret;", writers).blocks;
  REQUIRE(branches.size() == 5);
  CHECK(branches[0] < branches[1]);
  CHECK(branches[1] < branches[2]);
  CHECK(branches[2] == branches[3]);
  CHECK(branches[3] < branches[4]);
}

TEST_CASE("data flow: who writes a register, as an element of a vector too") {
  Numbers writers;
  outline("mov.u32 %r0, %r1;\nret;", writers);
  CHECK(writers.empty());
  outline("mov.u32 %r1, 1;\nmov.b64 {%r0, %r1}, %rd0;\nadd.s32 %r0, %r1, %r1;\nret;", writers);
  CHECK(writers == Numbers{0, 1});
  outline("ld.local.u32 %r0, [%r1];\nshfl.sync.down.b32 %r1|%p1, %r0, 1, 31, -1;\nret;", writers);
  CHECK(writers == Numbers{1});
}
