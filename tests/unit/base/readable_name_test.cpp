// Mangled names of kernels as a person writes them.
#include "base/readable_name.h"

#include <doctest/doctest.h>

using kernwright::readable_name;

TEST_CASE("readable names: kernels as they are asked for") {
  CHECK(readable_name("_Z5saxpyfPKfPfi") == "saxpy");
  CHECK(readable_name("_Z1fILi64EdEvPT0_") == "f<64, double>");
  CHECK(readable_name("_ZN4deep1kIfEEvPT_PFvfE") == "deep::k<float>");
  CHECK(readable_name("_ZN12_GLOBAL__N_11gEv") == "(anonymous namespace)::g");
  CHECK(readable_name("_Z1hIFvfEEvPT_") == "h<void (float)>");
}

TEST_CASE("readable names: what is not mangled stays") {
  for (const char* name : {"", "k", "_Z", "_Znothing", "void f(int)"}) {
    CHECK(readable_name(name) == name);
  }
}
