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
        Names{"S::a", "S::b", "S::c", "S::d", "S::e", "S::f"});
  CHECK(members_of("class alignas(16) C : B<int> { long x; }; union U { int i; float x; };") ==
        Names{"C::x", "U::i", "U::x"});
  CHECK(members_of("template <class T> struct Box { T lo; struct { int in; } n; };") ==
        Names{"Box::lo", "::in", "Box::n"});
  CHECK(members_of("struct S { int (*f)(int), (*rows)[4]; struct T { int a; } t[2], *p; };") ==
        Names{"S::f", "S::rows", "T::a", "S::t", "S::p"});
  CHECK(members_of("struct __align__(8) [[a]] n::S<int>::Q final : B<X> { int a; };"
                   "typedef struct { int b; } T; template <> struct V<float, 2> { int c; };"
                   "struct alignas(16) { int d; } e; struct MACRO R { int f; };") ==
        Names{"Q::a", "::b", "V::c", "::d", "R::f"});
  CHECK(members_of("#define ab 1\n#define  c 1\nstruct S { int a, b, c; };") ==
        Names{"S::a", "S::b"});
  CHECK(members_of("#define S Other\nstruct S { int a; };") == Names{"::a"});
  CHECK(members_of("#define a b\nstruct S { int a; int c; };") == Names{"S::c"});
}

TEST_CASE("member names: nothing of functions, enums and odd texts") {
  CHECK(members_of("__global__ void k(int n) { int x; float y = 1; }").empty());
  CHECK(members_of("enum E { a, b }; int c;").empty());
  CHECK(members_of("struct S").empty());
  CHECK(members_of("struct {{{ }}").empty());
  CHECK(members_of("").empty());
  std::string many = "struct S {";
  for (int i = 0; i < 1000; ++i) many += " int m" + std::to_string(i) + ";";
  CHECK(members_of(many).size() == 128);
}
