// Names and types in parameter lists.
#include "jit/source/parameter_scanner.h"

#include <doctest/doctest.h>

using namespace kernwright;

namespace {

std::string parameter_names(std::string_view text) {
  const TokenizedSource source = tokenize(text);
  std::string result;
  for (const ScannedParameter& p : scan_parameters(source.tokens)) {
    result += (result.empty() ? "" : ",") + (p.name.empty() ? std::string("-") : p.name);
  }
  return result;
}

std::string type(std::string_view text) {
  const TokenizedSource source = tokenize(text);
  return scan_parameters(source.tokens).at(0).type;
}

}  // namespace

TEST_CASE("parameters: none") {
  CHECK(parameter_names("") == "");
  CHECK(parameter_names("void") == "");
}

TEST_CASE("parameters: plain declarators") {
  CHECK(parameter_names("float a, const float* x, float *y, int n") == "a,x,y,n");
  CHECK(parameter_names("const float* __restrict__ x, float const * const y") == "x,y");
  CHECK(parameter_names("unsigned n, unsigned long long m, long double d") == "n,m,d");
  CHECK(parameter_names("struct P p, const struct P* q, enum E e, typename T::type t") ==
        "p,q,e,t");
  CHECK(parameter_names("ns::T<int, float> x, std::array<int, (3 > 2)> y") == "x,y");
  CHECK(parameter_names("const __grid_constant__ P p, [[maybe_unused]] int n") == "p,n");
  CHECK(parameter_names("T x, T const y") == "x,y");
}

TEST_CASE("parameters: without names") {
  CHECK(parameter_names("float, const float*, unsigned int, unsigned") == "-,-,-,-");
  CHECK(parameter_names("T, const T, ns::T, T*, struct P, ns::T<int>") == "-,-,-,-,-,-");
  CHECK(parameter_names("float*, int n, float* __restrict__") == "-,n,-");
}

TEST_CASE("parameters: arrays, function pointers, references, packs") {
  CHECK(parameter_names("float a[4], const float m[3][3], int b[]") == "a,m,b");
  CHECK(parameter_names("int (*f)(float, int), void (*)(int), float (*arr)[4]") == "f,-,arr");
  CHECK(parameter_names("float (&a)[4], T&& t, int (C::*member)(int)") == "a,t,member");
  CHECK(parameter_names("int n, T... rest, Ts*... more") == "n,rest...,more...");
}

TEST_CASE("parameters: default arguments are cut off") {
  CHECK(parameter_names("int n = 3, float x = f(1, 2), P p = {1, 2}, int m = (1 < 2)") ==
        "n,x,p,m");
  CHECK(type("unsigned int n = 4") == "unsigned int");
}

TEST_CASE("parameters: the type is what remains") {
  CHECK(type("const float* __restrict__ x") == "const float * __restrict__");
  CHECK(type("unsigned long long n") == "unsigned long long");
  CHECK(type("float a[4]") == "float [ 4 ]");
}

TEST_CASE("parameters: odd texts end") {
  for (const char* odd :
       {",", ",,", "(", "((", "int (", "= =", "< < <", "[[", "[[]]", "...", ")"}) {
    CHECK_NOTHROW(parameter_names(odd));
  }
}
