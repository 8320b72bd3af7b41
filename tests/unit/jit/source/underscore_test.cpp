// Names that ptxas refuses.
#include "jit/source/underscore.h"

#include <doctest/doctest.h>

#include <string>

using namespace kernwright;

namespace {

bool is_renamed(const std::string& text, ProgramOptions options = {}) {
  return with_underscore_renamed({text, "k.cu", 1, {}}, std::move(options)).defines.contains("_");
}

}  // namespace

TEST_CASE("underscore: a name of the text is renamed") {
  CHECK(is_renamed("constexpr int _ = 3;"));
  CHECK(is_renamed("__global__ void k(int n) { auto f = [](int _) { return _; }; }"));
}

TEST_CASE("underscore: what is no such name stays") {
  CHECK_FALSE(is_renamed("__global__ void k(int n_, int _m) {}"));
  CHECK_FALSE(is_renamed("// _\nconst char* text = \"_\";"));
  CHECK_FALSE_MESSAGE(is_renamed("#define _ 3\nint a = _;"), "a macro of the text");
  CHECK_FALSE_MESSAGE(is_renamed("# define _(a) a\nint a = _(3);"), "a macro with parameters");
  ProgramOptions options;
  options.headers["own.h"] = "#define _ 3";
  CHECK_FALSE_MESSAGE(is_renamed("#include <own.h>\nint a = _;", options), "a macro of a header");
  ProgramOptions defined;
  defined.defines["_"] = "7";
  CHECK(with_underscore_renamed({"int a = _;", "k.cu", 1, {}}, defined).defines.at("_") == "7");
}
