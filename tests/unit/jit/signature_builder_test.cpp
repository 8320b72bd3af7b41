// Joining of compiler's types and source's names.
#include "jit/signature/signature_builder.h"

#include <doctest/doctest.h>

#include "base/errors.h"
#include "jit/signature/ptx_parameters.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

TEST_CASE("signature: base names") {
  CHECK(base_name("ns::scale<float, 4>") == "ns::scale");
  CHECK(base_name("& ::ns::scale") == "ns::scale");
  CHECK(base_name("k") == "k");
  CHECK(base_name("") == "");
}

TEST_CASE("signature: names come from the source, in its order, packs are spread") {
  const std::string text =
      "template <class T, class... R> __global__ void k(int n, T* __restrict__ x, R... rest) {}";
  const auto code = Compiler(newest_nvrtc()).compile(request_for(text, {"k<float, double, int*>"}));
  CHECK(code.kernels.at(0).to_string() ==
        "k<float, double, int*>(int n, float* x, double rest0, int* rest1)");
}

TEST_CASE("signature: a parameter without a name is called by its position") {
  const auto code =
      Compiler(newest_nvrtc()).compile(request_for("__global__ void k(int, float x) {}"));
  CHECK(code.kernels.at(0).to_string() == "k(int arg1, float x)");
  const auto macro =
      Compiler(newest_nvrtc())
          .compile(request_for("#define ARGS int a, int b\n__global__ void k(ARGS) {}"));
  CHECK(macro.kernels.at(0).to_string() == "k(int arg1, int arg2)");
}

TEST_CASE("signature: sizes agree with the .param declarations of the PTX") {
  const std::string text =
      "struct P { char c; double d[3]; }; struct alignas(16) Q { int a; }; struct E {};"
      "__global__ void k(char a, P p, short s, Q q, float3 f3, float2 f2, double d, bool b, E e,"
      "const int* x, long long l, uchar4 u) {}";
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    const auto code = Compiler(nvrtc).compile(request_for(text));
    const auto& kernel = code.kernels.at(0);
    const auto declared = ptx_parameters(code.code, kernel.lowered);
    REQUIRE(declared);
    REQUIRE(declared->size() == kernel.parameters.size());
    for (std::size_t i = 0; i < declared->size(); ++i) {
      CAPTURE(i);
      CHECK((*declared)[i].size == kernel.parameters[i].size);
      CHECK((*declared)[i].alignment == kernel.parameters[i].alignment);
    }
  }
}

TEST_CASE("signature: without a probe the PTX and the spelling must do") {
  const auto code = Compiler(newest_nvrtc())
                        .compile(request_for(
                            "#define template oops\n__global__ void k(float a, const unsigned* b,"
                            "unsigned c, double d, float4 f, bool t, float z[3]) {}"));
  const auto& p = code.kernels.at(0).parameters;
  REQUIRE(p.size() == 7);
  CHECK(p[0].scalar == ScalarType::float32);
  CHECK(p[1].kind == ParameterKind::pointer);
  CHECK(p[1].name == "b");
  CHECK(p[2].scalar == ScalarType::uint32);
  CHECK(p[3].offset == 24);
  CHECK(p[4].kind == ParameterKind::aggregate);
  CHECK(p[4].size == 16);
  CHECK(p[5].scalar == ScalarType::boolean);
  CHECK(p[6].kind == ParameterKind::pointer);
}

TEST_CASE("signature: a reference is refused where it stands") {
  auto request = request_for("\n__global__ void k(int n, float& x) { x = n; }", {"k"});
  request.source.first_line = 10;
  const auto error = thrown_by<CompileError>([&] { Compiler(newest_nvrtc()).compile(request); });
  CHECK(contains(error.what(), "kernel.cu:11"));
  CHECK(contains(error.what(), "parameter 2 (float& x) of kernel k is a reference"));
  CHECK(error.diagnostics.at(0).hint != "");
}
