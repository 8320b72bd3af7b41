// Programs that differ with their place, and programs that only name it.
#include "tune/judge/elsewhere.h"

#include <doctest/doctest.h>

#include <string>

#include "base/format.h"

using namespace kernwright;

namespace {

std::string data_of(const std::string& name) {
  std::string data = format(".b8 $str[{}] = {{", name.size() + 1);
  for (const char c : name) data += format("{}{}", data.back() == '{' ? "" : ", ", int{c});
  return data + "};";
}

bool is_one(const std::string& here, const std::string& there) {
  return is_one_program("kernel.cu", here, "/a/b/long_name.py", there);
}

}  // namespace

TEST_CASE("elsewhere: names as in use") {
  const auto others = elsewhere({"text", "kernel.cu", 1, {}});
  REQUIRE(others.size() == 2);
  CHECK(others[0].name.starts_with("/"));
  CHECK_MESSAGE(others[0].name.size() > 200, "longer than names in use");
  CHECK(others[1].name == "<string>");
  CHECK(others[1].text == "text");
}

TEST_CASE("elsewhere: names as data are no decisions") {
  CHECK(is_one("mov.u32 %r1, 5;", "mov.u32 %r1, 5;"));
  CHECK(is_one(data_of("kernel.cu"), data_of("/a/b/long_name.py")));
  CHECK(is_one("call _INTERNAL_ab_kernel;", "call _INTERNAL_cd_kernel;"));
  CHECK_FALSE(
      is_one("call _INTERNAL_ab; call _INTERNAL_ab;", "call _INTERNAL_cd; call _INTERNAL_ef;"));
}

TEST_CASE("elsewhere: other instructions, numbers and names are") {
  CHECK_FALSE(is_one("mov.u32 %r1, 5;", "mov.u32 %r1, 6;"));
  CHECK_FALSE(is_one("mov.u32 %r1, 5;", "mov.u32 %r2, 5;"));
  CHECK_FALSE(is_one("add.u32 %r1, %r1, 5;", "sub.u32 %r1, %r1, 5;"));
  CHECK_FALSE(is_one("ret;", "ret; ret;"));
  CHECK_FALSE(is_one("call one;", "call two;"));
  CHECK_FALSE_MESSAGE(is_one("ret;", "ret; `"), "no PTX");
}
