// Signatures from foreign cubins and PTX.
#include "jit/signature/image_reader.h"

#include <doctest/doctest.h>

#include <random>

#include "base/errors.h"
#include "jit/signature/cubin_reader.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

const std::string kImageText =
    "struct P { char c; double d[5]; }; __constant__ float w[4]; __device__ int mode;\n"
    "namespace n { __device__ double x; }\n"
    "extern \"C\" __global__ void raw(float* o, P p, char c, short s, int i, double d) {\n"
    "  o[0] = p.d[c] + s + i + d + w[i] + mode + n::x; }\n"
    "template <class T> __global__ void t(T* x, float4 v) { *x = v.x; }\n"
    "namespace n { __global__ void empty() {} }\n"
    "__global__ void over(float*) {}\n";

ObjectCode compiled_image(const LoadedNvrtc& nvrtc, CodeKind kind) {
  auto request = request_for(kImageText, {"t<float>"}, kind);
  request.with_declared = true;
  return Compiler(nvrtc).compile(request);
}

}  // namespace

TEST_CASE("images: names, types and sizes agree with those of the compiler") {
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    for (const CodeKind kind : {CodeKind::ptx, CodeKind::cubin}) {
      const ObjectCode known = compiled_image(nvrtc, kind);
      const ObjectCode read = object_code_of_image(known.code);
      CHECK(read.kind == kind);
      CHECK(read.arch == known.arch);
      REQUIRE(read.kernels.size() == known.kernels.size());
      for (const KernelSignature& kernel : known.kernels) {
        CAPTURE(kernel.name);
        const KernelSignature& found = read.kernel(kernel.name);
        CHECK(found.lowered == kernel.lowered);
        REQUIRE(found.parameters.size() == kernel.parameters.size());
        for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
          CHECK(found.parameters[i].size == kernel.parameters[i].size);
          if (kernel.name == "raw") continue;
          CHECK(found.parameters[i].type == kernel.parameters[i].type);
          CHECK(found.parameters[i].scalar == kernel.parameters[i].scalar);
          CHECK(found.parameters[i].offset == kernel.parameters[i].offset);
        }
      }
      CHECK(read.kernel("raw").parameters[0].kind == ParameterKind::untyped);
      CHECK(read.kernel("raw").parameters[1].kind == ParameterKind::aggregate);
      CHECK(read.symbols.contains("w"));
      CHECK(read.symbols.at("n::x") == "_ZN1n1xE");
    }
  }
}

TEST_CASE("images: what is none, and what is cut or damaged") {
  for (const std::string& bad : {std::string(), std::string("junk"), std::string("\x7f") + "ELF",
                                 std::string("\x7f") + "ELF" + std::string(200, '\1')}) {
    CHECK_THROWS_AS(object_code_of_image(bad), Error);
  }
  const std::string cubin = compiled_image(newest_nvrtc(), CodeKind::cubin).code;
  for (std::size_t size = 0; size < cubin.size() / 2; size += 7) {
    CHECK_THROWS_AS(read_cubin(std::string_view(cubin).substr(0, size)), Error);
  }
  std::mt19937 random(1);
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = cubin;
    for (int k = 0; k < 4; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    try {
      read_cubin(bytes);
      ++read;
    } catch (const Error&) {}
  }
  CHECK(read > 0);
}

TEST_CASE("images: kernels whose names are the same keep their lowered ones") {
  const ObjectCode code = object_code_of_image(
      "// the .entry point, of k\n.version 8.0\n.target sm_80\n/* .entry old(\n.param .u32 a) { } "
      "*/.entry _Z1kPf(.param .u64 a) { }\n.entry _Z1kPi(.param .u64 a)"
      " { }\n.entry m(.param .f32 x, .param .u32 y) { }\n");
  CHECK(code.kernel("_Z1kPf").to_string() == "_Z1kPf(float* arg1)");
  CHECK(code.kernel("_Z1kPi").parameters[0].scalar == ScalarType::int32);
  CHECK(code.kernel("m").to_string() == "m(float arg1, 4 bytes arg2)");
  CHECK(code.kernels.size() == 3);
  for (const char* odd : {".version 8.0\n.entry", ".version 8.0\n.entry k", ".version 8.0\n/* \"",
                          ".version 8.0\n.entry k(.param", ".version 8.0\n\"// .entry k() {}"}) {
    CHECK(object_code_of_image(odd).kernels.size() <= 1);
  }
}
