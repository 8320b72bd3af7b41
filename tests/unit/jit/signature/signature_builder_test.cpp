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

TEST_CASE("signature: without a probe names and spellings say what is sure") {
  const KernelDeclaration declared = find_kernels(
                                         "extern \"C\" __global__ void k(float a, const unsigned* "
                                         "b, T* c, U d, float4 e, char* f)")
                                         .at(0);
  const std::string ptx =
      ".entry k(\n.param .f32 k_0,\n.param .u64 k_1,\n.param .u64 k_2,\n.param .u64 k_3,\n"
      ".param .align 16 .b8 k_4[16],\n.param .u64 k_5\n)";
  const auto p = signature_from_code("k", "k", ptx, &declared).parameters;
  REQUIRE(p.size() == 6);
  CHECK(p[0].scalar == ScalarType::float32);
  CHECK(p[1].kind == ParameterKind::pointer);
  CHECK(p[1].scalar == ScalarType::uint32);
  CHECK(p[1].pointee_const);
  CHECK(p[2].kind == ParameterKind::pointer);
  CHECK_FALSE(p[2].scalar);
  CHECK(p[3].kind == ParameterKind::untyped);
  CHECK(p[4].kind == ParameterKind::vector);
  CHECK(p[4].offset == 32);
  CHECK(p[5].any_byte_pointee);
  // A macro may give this word another meaning: the sizes decide.
  const std::string other = ".entry k(.param .f64 k_0)";
  const KernelDeclaration renamed = find_kernels("__global__ void k(float a)").at(0);
  CHECK(signature_from_code("k", "k", other, &renamed).parameters[0].scalar == ScalarType::float64);
  CHECK_THROWS_AS(signature_from_code("m", "m", ptx, nullptr), NameNotFound);
}

TEST_CASE("signature: a lowered name spells types, also those of template arguments") {
  const std::string name =
      "_Z1fIN36_GLOBAL__N__00000000_4_k_cu__Z1kPiDn1QEJidEEvPfT_PS3_PKS3_DpT0_";
  const std::string ptx = ".entry " + name +
                          "(.param .u64 a, .param .align 4 .b8 b[4], .param .u64 c, .param .u64 d,"
                          " .param .u32 e, .param .f64 f)";
  const auto p = signature_from_code("f", name, ptx, nullptr).parameters;
  REQUIRE(p.size() == 6);
  CHECK(p[0].scalar == ScalarType::float32);
  CHECK(p[1].kind == ParameterKind::aggregate);
  CHECK(p[1].type == "(anonymous namespace)::Q");
  CHECK(p[1].size == 4);
  CHECK(p[2].type == "(anonymous namespace)::Q*");
  CHECK(p[3].type == "const (anonymous namespace)::Q*");
  CHECK(p[3].pointee_const);
  CHECK(p[4].scalar == ScalarType::int32);
  CHECK(p[5].scalar == ScalarType::float64);
}

TEST_CASE("signature: types that a probe cannot take harm no other kernel") {
  const std::string text =
      "namespace { struct Q { int a; }; }\n"
      "class S { struct P { float a; }; friend __global__ void h(float* o, S::P p); };\n"
      "__device__ struct { int b; } unnamed;\n"
      "__global__ void f(float* o, Q p, const Q* q) { o[0] = p.a; }\n"
      "__global__ void g(float* o, float x) { o[0] = x; }\n"
      "__global__ void h(float* o, S::P p) { o[0] = p.a; }\n"
      "extern \"C\" __global__ void u(const double* o, decltype(unnamed) p) {}\n"
      "__device__ auto make() { struct Local { short s[3]; }; return Local(); }\n"
      "__global__ void l(decltype(make()) p, int* o) {}\n";
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    const auto code = Compiler(nvrtc).compile(request_for(text));
    CHECK(code.kernel("f").to_string() ==
          "f(float* o, (anonymous namespace)::Q p, const (anonymous namespace)::Q* q)");
    CHECK(code.kernel("f").parameters[2].pointee_size == 4);
    CHECK(code.kernel("g").to_string() == "g(float* o, float x)");
    CHECK(code.kernel("h").parameters[0].scalar == ScalarType::float32);
    CHECK(code.kernel("h").parameters[1].type == "S::P");
    CHECK(code.kernel("h").parameters[1].size == 4);
    CHECK(code.kernel("u").parameters[0].type == "const double*");
    CHECK(code.kernel("u").parameters[0].scalar == ScalarType::float64);
    CHECK(code.kernel("l").parameters[0].size == 6);
    CHECK(code.kernel("l").parameters[1].scalar == ScalarType::int32);
  }
}

TEST_CASE("signature: a reference is refused where it stands") {
  auto request = request_for("\n__global__ void k(int n, float& x) { x = n; }", {"k"});
  request.source.first_line = 10;
  const auto error = thrown_by<CompileError>([&] { Compiler(newest_nvrtc()).compile(request); });
  CHECK(contains(error.what(), "kernel.cu:11"));
  CHECK(contains(error.what(), "parameter 2 (float& x) of kernel k is a reference"));
  CHECK(error.diagnostics.at(0).hint != "");
}
