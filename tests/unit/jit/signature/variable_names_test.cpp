// Names of variables without a name expression.
#include "jit/signature/variable_names.h"

#include <doctest/doctest.h>

using namespace kernwright;

TEST_CASE("variable names: plain names are lowered as the compiler lowers them") {
  CHECK(lowered_variable("m") == "m");
  CHECK(lowered_variable("n::x") == "_ZN1n1xE");
  CHECK(lowered_variable("a::b::counts") == "_ZN1a1b6countsE");
}

TEST_CASE("variable names: a definition in PTX is told from a use") {
  const std::string ptx =
      ".global .attribute(.managed) .align 4 .b8 m[12] = {1, 0};\n"
      ".global .align 8 .u64 p = used;\n.const .align 4 .u32 c = 3;\n.global .u32 longer;\n"
      "\tld.global.u32 \t%r1, [named];\n";
  for (const char* name : {"m", "p", "c", "longer"}) CHECK(defines_variable(ptx, name));
  for (const char* name : {"used", "named", "long", "onger", "b8", ""}) {
    CAPTURE(name);
    CHECK(!defines_variable(ptx, name));
  }
}

TEST_CASE("variable names: mangled ones are read, functions and odd bytes are not") {
  const std::string code = std::string(
                               "\x7f"
                               "ELF\0_Z5tableILi3EE\0_ZN1n3rowILi4EEE\0_Z1kPi\0",
                               52) +
                           ".text._Z5scaleIfEvPT_ _ZN27_INTERNAL_00000000_4_a_cu_m1n2sxE "
                           "x_Z1yILi1EE _Z _ZZ1kPiE1s _Zqqq";
  CHECK(mangled_variables(code) ==
        std::map<std::string, std::string>{{"n::row<4>", "_ZN1n3rowILi4EEE"},
                                           {"n::sx", "_ZN27_INTERNAL_00000000_4_a_cu_m1n2sxE"},
                                           {"table<3>", "_Z5tableILi3EE"}});
  CHECK(mangled_variables("").empty());
  CHECK(mangled_variables(std::string(100000, 'A').insert(0, "_Z")).empty());
  CHECK(without_blanks("f< unsigned int >") == "f<unsignedint>");
}
