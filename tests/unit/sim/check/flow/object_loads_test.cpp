// The loads taken for parts of an object.
#include "sim/check/flow/object_loads.h"

#include "sim/ptx/parse/parser.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace kernwright::sim;

namespace {

/// The alignment found for each load of the body.
std::vector<std::uint32_t> alignments(const std::string& body) {
  const auto module = ptx::parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .b16 %h<9>;\n"
      ".reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n" +
      body + "\nret;\n}\n");
  const ptx::Function& function = module->functions[0];
  const auto found = find_object_loads(function, make_outline(function));
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    if (!function.body[i].opcode.starts_with("ld")) continue;
    all.push_back(found.contains(i) ? found.at(i) : 0);
  }
  return all;
}

using Each = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("object loads: pieces of several kinds beside each other are an object's") {
  CHECK(alignments("ld.global.f32 %r1, [%rd1];") == Each{0});
  CHECK(alignments("ld.global.u32 %r1, [%rd1];\nld.global.u64 %rd2, [%rd1+8];") == Each{0, 0});
  CHECK(alignments("ld.global.u32 %r1, [%rd1+8];\nld.global.u64 %rd2, [%rd1];") == Each{16, 16});
  CHECK(alignments("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];\n"
                   "ld.global.v2.u8 {%h1, %h2}, [%rd1+16];\n"
                   "ld.global.v2.u8 {%h3, %h4}, [%rd1+18];\n"
                   "ld.global.u8 %h5, [%rd1+21];") == Each{16, 16, 16, 0});
  // A load of another's bytes stands beside it.
  CHECK(alignments("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];\n"
                   "ld.global.u32 %r5, [%rd1+12];") == Each{16, 16});
  CHECK(alignments("ld.global.u32 %r1, [%rd1];\nld.global.u64 %rd3, [%rd2+4];") == Each{0, 0});
  CHECK(alignments("st.global.u32 [%rd1], 1;\nld.global.u8 %h1, [%rd1+2];") == Each{16});
  CHECK(alignments("st.global.u32 [%rd1], 1;\nld.global.u8 %h1, [%rd1+4];") == Each{0});
  CHECK(alignments("st.global.u16 [%rd1], 1;\nld.global.u32 %r1, [%rd1];") == Each{0});
  CHECK(alignments("st.global.u32 [%rd1], 1;\nld.global.u32 %r1, [%rd1];") == Each{0});
}

TEST_CASE("object loads: equal pieces are elements of an array, but in generic code") {
  const std::string four =
      "ld.SPACEu32 %r1, [%rd1];\nld.SPACEu32 %r2, [%rd1+4];\n"
      "add.s64 %rd2, %rd1, 8;\nld.SPACEu32 %r3, [%rd1+8];\nld.SPACEu32 %r4, [%rd2+4];";
  const auto in = [](std::string text, const std::string& space) {
    for (std::size_t at; (at = text.find("SPACE")) != text.npos;) text.replace(at, 5, space);
    return alignments(text);
  };
  CHECK(in(four, "global.") == Each{0, 0, 0, 0});
  CHECK(in(four, "") == Each{8, 8, 8, 8});
  CHECK(in("ld.SPACEu32 %r1, [%rd1];", "") == Each{0});
  CHECK(in("ld.SPACEu32 %r1, [%rd1];\nld.SPACEu32 %r2, [%rd1];", "") == Each{0, 0});
  CHECK(in("ld.SPACEu8 %h1, [%rd1];\nld.SPACEu8 %h2, [%rd1+1];", "") == Each{16, 16});
}

TEST_CASE("object loads: constants that are added to a register are followed a few steps") {
  CHECK(alignments("add.s64 %rd2, %rd1, 16;\nadd.s64 %rd3, %rd2, -12;\n"
                   "ld.global.u32 %r1, [%rd3];\nld.global.u16 %h1, [%rd1+2];") == Each{16, 16});
  CHECK(alignments("ld.global.u32 %r1, [%rd1];\nbra NEXT;\nNEXT:\n"
                   "ld.global.u16 %h1, [%rd1+4];") == Each{0, 0});
  CHECK(alignments("add.s64 %rd2, %rd1, %rd4;\nld.global.u32 %r1, [%rd2];\n"
                   "ld.global.u16 %h1, [%rd1+4];") == Each{0, 0});
  CHECK(alignments("add.s64 %rd2, %rd1, 4;\nadd.s64 %rd2, %rd2, 4;\n"
                   "ld.global.u32 %r1, [%rd2];\nld.global.u16 %h1, [%rd1+4];") == Each{0, 0});
}
