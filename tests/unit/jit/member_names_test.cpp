// Candidates for the names of struct members.
#include "jit/source/member_names.h"

#include <doctest/doctest.h>

using namespace kernwright;

namespace {

std::vector<std::string> members_of(std::string_view text) {
  MemberNames names;
  names.add(text);
  return names.take();
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("member names: declarators of structs, classes and unions") {
  CHECK(members_of("struct S { int a, *b; float c[3]; T<int> d; E e = E::x; X f{}; };") ==
        Names{"a", "b", "c", "d", "e", "f"});
  CHECK(members_of("class alignas(16) C : B<int> { long x; }; union U { int i; float x; };") ==
        Names{"x", "i"});
  CHECK(members_of("template <class T> struct Box { T lo; struct { int in; } n; };") ==
        Names{"lo", "in", "n"});
  CHECK(members_of("struct S { int (*f)(int), (*rows)[4]; struct T { int a; } t[2], *p; };") ==
        Names{"f", "rows", "a", "t", "p"});
  CHECK(members_of("#define a b\nstruct S { int a; int c; };") == Names{"c"});
}

TEST_CASE("member names: nothing of functions, enums and odd texts") {
  CHECK(members_of("__global__ void k(int n) { int x; float y = 1; }").empty());
  CHECK(members_of("enum E { a, b }; int c;").empty());
  CHECK(members_of("struct S").empty());
  CHECK(members_of("struct {{{ }}").empty());
  CHECK(members_of("").empty());
  std::string many = "struct S {";
  for (int i = 0; i < 1000; ++i) many += " int m" + std::to_string(i) + ";";
  CHECK(members_of(many).size() == 64);
}
