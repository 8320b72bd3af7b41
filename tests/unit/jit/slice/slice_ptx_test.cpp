// Parameters and reads of a PTX module after it was cut.
#include "jit/slice/slice_ptx.h"

#include "base/errors.h"
#include "jit/signature/ptx_parameters.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace kernwright;

namespace {

const std::string kHead = ".version 8.0\n.target sm_80\n.address_size 64\n";

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

std::string refusal(const std::string& body) {
  try {
    slice_ptx(kHead + ".entry k()\n{\n" + body + "\nret;\n}\n", false);
  } catch (const NotSliceable& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("slice ptx: parameters come first, and reads become registers") {
  const std::string made = slice_ptx(kHead +
                                         ".visible .entry k(\n\t.param .u64 k_param_0\n)\n{\n"
                                         "\t.reg .b32 %r<3>;\n\tmov.u32 %r1, %ctaid.y; // %ctaid\n"
                                         "\tmov.u32 %r2, %nctaid.x;\n\tret;\n}\n",
                                     false);
  const auto parameters = ptx_parameters(made, "k");
  REQUIRE(parameters);
  REQUIRE(parameters->size() == 3);
  CHECK((*parameters)[0].size == 12);
  CHECK((*parameters)[1].size == 12);
  CHECK((*parameters)[2].size == 8);
  CHECK(made.find("mov.u32 %r1, %kernwright_at_y; // %ctaid\n") != std::string::npos);
  CHECK(made.find("mov.u32 %r2, %kernwright_grid_x;") != std::string::npos);
  CHECK(count(made, "%ctaid.x") == 1);  // of the prologue
  CHECK(count(made, "kernwright_place") == 0);
}

TEST_CASE("slice ptx: no line moves") {
  const std::string text = kHead + ".entry k()\n{\n\tret;\n}\n.entry l\n{\n\tret;\n}\n";
  const std::string made = slice_ptx(text, true);
  CHECK(std::count(made.begin(), made.end(), '\n') == std::count(text.begin(), text.end(), '\n'));
  CHECK(ptx_parameters(made, "k")->size() == 4);
  CHECK(ptx_parameters(made, "l")->size() == 4);
}

TEST_CASE("slice ptx: functions beside kernels read shared memory") {
  const std::string made =
      slice_ptx(kHead +
                    ".func (.param .b32 r) g()\n{\n\t.reg .b32 %r<2>;\n\tmov.u32 %r1, %ctaid.x;\n"
                    "\tst.param.b32 [r], %r1;\n\tret;\n}\n.func quiet()\n{\n\tret;\n}\n.entry "
                    "k()\n{\n\tret;\n}\n",
                false);
  CHECK(count(made, ".shared .align 4 .b8 kernwright_place[24];") == 1);
  CHECK(count(made, "ld.shared.u32") == 6);
  CHECK(count(made, "st.shared.u32") == 6);
  CHECK(count(made, "bar.sync 0;") == 1);
  CHECK(made.find(".shared") < made.find(".func"));
}

TEST_CASE("slice ptx: what cannot be redirected is refused by its name") {
  CHECK(refusal("mov.v4.u32 {%r1,%r2,%r3,%r4}, %ctaid;").find("%ctaid as a vector") !=
        std::string::npos);
  CHECK(refusal("mov.u32 %r1, %clusterid.x;").find("%clusterid") != std::string::npos);
  CHECK(refusal("mov.u64 %rd1, %gridid;").find("%gridid") != std::string::npos);
  CHECK(refusal("mov.u32 %r1, %cluster_ctaid.x;").empty());
  CHECK(refusal("// %gridid").empty());
}

TEST_CASE("slice ptx: the state of a module is what a kernel may write, and its constants") {
  const auto state = ptx_state(kHead +
                               ".visible .global .align 4 .u32 counter;\n"
                               ".global .align 4 .u32 hidden;\n"
                               ".visible .const .align 4 .b8 coefficients[16];\n"
                               ".global .align 1 .b8 $str[4] = {37, 100, 10, 0};\n"
                               ".entry k()\n{\n\t.shared .align 4 .b8 s[4];\n\tret;\n}\n");
  REQUIRE(state.size() == 3);
  CHECK(state[0].name == "counter");
  CHECK_FALSE(state[0].is_constant);
  CHECK(state[1].name == "hidden");
  CHECK(state[2].name == "coefficients");
  CHECK(state[2].is_constant);
}

TEST_CASE("slice ptx: odd texts come back, whatever they are") {
  for (const char* const text : {"", ".entry", ".entry k", ".entry k(", ".entry k() {", "}", "{",
                                 "\"", ".func f", "/*", "%", "%ctaid"}) {
    try {
      slice_ptx(text, true);
    } catch (const NotSliceable&) {  // the last one
    }
  }
}
