// Parameter sizes out of PTX text.
#include "jit/signature/ptx_parameters.h"

#include <doctest/doctest.h>

#include <string>

using namespace kernwright;

namespace {

constexpr std::string_view kPtx = R"(
.visible .entry other() { ret; }
.visible .entry kern(
	.param .u64 .ptr .global .align 1 kern_param_0,
	.param .f32 kern_param_1,
	.param .align 8 .b8 kern_param_2[24],
	.param .u64 .ptr .align 1 kern_param_3,
	.param .u8 kern_param_4,
	.param .f64 kern_param_5
)
.maxntid 128
{ ret; }
.visible .entry kern2(.param .u64 .ptr.global kern2_param_0){ ret; }
)";

}  // namespace

TEST_CASE("ptx parameters: sizes, alignments and kinds") {
  const auto p = ptx_parameters(kPtx, "kern");
  REQUIRE(p);
  REQUIRE(p->size() == 6);
  CHECK((*p)[0].is_pointer);
  CHECK((*p)[0].size == 8);
  CHECK((*p)[0].alignment == 8);
  CHECK((*p)[1].size == 4);
  CHECK((*p)[1].is_floating);
  CHECK_FALSE((*p)[1].is_pointer);
  CHECK((*p)[2].is_bytes);
  CHECK((*p)[2].size == 24);
  CHECK((*p)[2].alignment == 8);
  CHECK((*p)[3].is_pointer);
  CHECK((*p)[4].size == 1);
  CHECK_FALSE((*p)[4].is_floating);
  CHECK((*p)[5].size == 8);
}

TEST_CASE("ptx parameters: none, and an unknown entry") {
  REQUIRE(ptx_parameters(kPtx, "other"));
  CHECK(ptx_parameters(kPtx, "other")->empty());
  CHECK_FALSE(ptx_parameters(kPtx, "ker"));
  CHECK_FALSE(ptx_parameters(kPtx, ""));
  CHECK_FALSE(ptx_parameters("", "kern"));
}

TEST_CASE("ptx parameters: cut texts end") {
  for (std::size_t i = 0; i <= kPtx.size(); ++i)
    CHECK_NOTHROW(ptx_parameters(kPtx.substr(0, i), "kern"));
}

TEST_CASE("ptx parameters: kernels and variables of a text") {
  const std::string ptx =
      ".version 8.0\n.visible .entry a(\n.param .u64 p)\n{\n.global .u32 no;\nret;\n}\n"
      ".entry b { }\n.entry a { }\n.entryx c\n"
      ".visible .const .align 4 .b8 w[16];\n.global .align 4 .u32 n = 3;\n"
      ".extern .global .u32 away;\n.global .u64 p[1] = {generic(n)};\n.shared .u32 s;\n";
  CHECK(ptx_entries(ptx) == std::vector<std::string>{"a", "b"});
  CHECK(ptx_variables(ptx) == std::vector<std::string>{"w", "n", "p"});
  CHECK(ptx_entries("").empty());
  CHECK(ptx_variables(".global").empty());
}
