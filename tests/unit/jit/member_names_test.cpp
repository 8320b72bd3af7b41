// Candidates for the names of struct members.
#include "jit/source/member_names.h"

#include <doctest/doctest.h>

using namespace kernwright;

namespace {

std::vector<std::string> names(std::string_view text) {
  MemberNames names;
  names.add(text);
  return names.take();
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("member names: declarators of structs, classes and unions") {
  CHECK(names("struct S { int a, *b; float c[3]; T<int> d; E e = E::x; X f{}; };") ==
        Names{"a", "b", "c", "d", "e", "f"});
  CHECK(names("class alignas(16) C : B<int> { long x; }; union U { int i; float x; };") ==
        Names{"x", "i"});
  CHECK(names("template <class T> struct Box { T lo; struct { int in; } n; };") ==
        Names{"lo", "in"});
  CHECK(names("#define a b\nstruct S { int a; int c; };") == Names{"c"});
}

TEST_CASE("member names: nothing of functions, enums and odd texts") {
  CHECK(names("__global__ void k(int n) { int x; float y = 1; }").empty());
  CHECK(names("enum E { a, b }; int c;").empty());
  CHECK(names("struct S").empty());
  CHECK(names("struct {{{ }}").empty());
  CHECK(names("").empty());
  std::string many = "struct S {";
  for (int i = 0; i < 1000; ++i) many += " int m" + std::to_string(i) + ";";
  CHECK(names(many).size() == 64);
}
