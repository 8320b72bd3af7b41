// From strings to object code with the real NVRTC, and the errors of its failures.
#include "jit/compile/compiler.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/errors.h"
#include "jit/compile/compile_trace.h"
#include "unit/jit/fake_nvrtc.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

const std::string kSaxpy =
    "__global__ void saxpy(float a, const float* x, float* y, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] = a * x[i] + y[i];\n"
    "}\n";

ObjectCode compile(const CompileRequest& request) {
  return Compiler(newest_nvrtc()).compile(request);
}

CompileError compile_error(const CompileRequest& request) {
  return thrown_by<CompileError>([&] { compile(request); });
}

std::string name_error(const std::string& text, const std::string& name) {
  return thrown_by<NameNotFound>([&] { compile(request_for(text, {name})); }).what();
}

std::string kernel_names(const ObjectCode& code) {
  std::string result;
  for (const auto& kernel : code.kernels) result += (result.empty() ? "" : ",") + kernel.name;
  return result;
}

}  // namespace

TEST_CASE("compiler: PTX with the cubin of the same kernels beside it") {
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    const ObjectCode code = Compiler(nvrtc).compile(request_for(kSaxpy));
    CHECK(code.kind == CodeKind::ptx);
    CHECK(code.arch == "compute_80");
    CHECK(contains(code.code, ".visible .entry _Z5saxpyfPKfPfi"));
    CHECK(contains(code.code, ".target sm_80"));
    CHECK(
        code.resource_cubin.starts_with("\x7f"
                                        "ELF"));
    CHECK(code.nvrtc_version == nvrtc.version());
    CHECK(code.compile_ms > 0);
    REQUIRE(code.kernels.size() == 1);
    CHECK(code.kernels[0].lowered == "_Z5saxpyfPKfPfi");
    CHECK(code.kernels[0].to_string() == "saxpy(float a, const float* x, float* y, int n)");
  }
}

TEST_CASE("compiler: without the members of structs all else is the same") {
  const std::string text =
      "struct Box { float low, high; int* count; };\n"
      "template <class T> __global__ void clip(T box, float* x) { *x = min(*x, box.high); }\n";
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    CompileRequest request = request_for(text, {"clip<Box>"});
    const ObjectCode whole = Compiler(nvrtc).compile(request);
    request.with_members = false;
    const ObjectCode code = Compiler(nvrtc).compile(request);
    CHECK(code.code == whole.code);
    REQUIRE(code.kernels.size() == 1);
    CHECK(code.kernels[0].to_string() == whole.kernels.at(0).to_string());
    REQUIRE(code.kernels[0].parameters.size() == 2);
    const Parameter& box = code.kernels[0].parameters[0];
    CHECK(box.size == 16);
    CHECK(box.alignment == 8);
    CHECK(box.type == "Box");
    CHECK(box.fields.empty());
    CHECK(whole.kernels[0].parameters.at(0).fields.size() == 3);
  }
}

TEST_CASE("compiler: headers of the library cost no second compile and tell what the text names") {
  const std::string inner =
      "#pragma once\nnamespace kernwright { template <int N> struct Inner {\n"
      "  static constexpr int kSize = N; int inside; __device__ int size() const { return *&kSize; "
      "}\n"
      "}; }\n";
  const std::string outer =
      "#include <kernwright/inner.cuh>\nnamespace kernwright {\n"
      "struct Outer { float first; Inner<3> second; }; }\n";
  for (const bool names_both : {false, true}) {
    CompileRequest request =
        request_for(std::string(names_both ? "#include <kernwright/inner.cuh>\n" : "") +
                    "#include <kernwright/outer.cuh>\n"
                    "__global__ void f(kernwright::Outer x, int* y) { *y = x.second.size() + "
                    "x.second.inside; }");
    request.options.headers = {{"kernwright/inner.cuh", inner}, {"kernwright/outer.cuh", outer}};
    const ObjectCode code = compile(request);
    CHECK(code.trace->attempts == 1);
    const auto& fields = code.kernel("f").parameters.at(0).fields;
    CHECK(code.kernel("f").parameters[0].size == 8);
    REQUIRE(fields.size() == (names_both ? 3 : 2));
    CHECK(fields[0].name == "first");
    if (names_both) CHECK(fields[2].name == "second.inside");
  }
}

TEST_CASE("compiler: a cubin has no PTX beside it") {
  const ObjectCode code = compile(request_for(kSaxpy, {}, CodeKind::cubin));
  CHECK(code.kind == CodeKind::cubin);
  CHECK(
      code.code.starts_with("\x7f"
                            "ELF"));
  CHECK(code.resource_cubin.empty());
  CHECK(code.arch == "sm_80");
}

TEST_CASE("compiler: the same request gives the same bytes") {
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    for (const CodeKind kind : {CodeKind::ptx, CodeKind::cubin}) {
      auto request =
          request_for("namespace { __global__ void k(int* x) { *x = 1; } }" + kSaxpy, {}, kind);
      request.options.lineinfo = true;
      const ObjectCode first = Compiler(nvrtc).compile(request);
      const ObjectCode second = Compiler(nvrtc).compile(request);
      CHECK(first.code == second.code);
      CHECK(first.kernels.at(0).lowered == second.kernels.at(0).lowered);
    }
  }
}

TEST_CASE("compiler: a text of templates alone gives bytes that do not tell the process") {
  const std::string text =
      "namespace n { constexpr float halves[2] = {0.5f, 1.5f}; }\n"
      "template <class T> __global__ void half(T* x, int i) { *x = n::halves[i]; }\n"
      "#define device a macro of the text\n";
  const std::string process = "_" + std::to_string(::getpid());
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    CompileRequest request = request_for(text, {"half<float>"});
    const ObjectCode code = Compiler(nvrtc).compile(request);
    const std::string& ptx = code.code;
    REQUIRE(code.trace);
    CHECK(code.trace->attempts == 1);
    CHECK(contains(ptx, "_INTERNAL_"));
    CHECK_FALSE(contains(ptx, process));
    CHECK_FALSE(contains(ptx, "kernwright_unit_"));
    // Two objects with the function could not be linked.
    request.options.extra = {"-rdc=true"};
    CHECK_FALSE(contains(Compiler(nvrtc).compile(request).code, "kernwright_unit_"));
  }
}

TEST_CASE("compiler: line numbers name the source as it is called, wherever the process stands") {
  auto request = request_for(kSaxpy);
  request.source.name = "folder/my kernel.cu";
  request.options.lineinfo = true;
  const ObjectCode code = compile(request);
  CHECK(contains(code.code, "\"folder/my kernel.cu\""));
  CHECK(contains(code.code, ".loc\t1 3 "));
}

TEST_CASE("compiler: names in namespaces, templates, statics, anonymous namespaces, extern C") {
  const std::string text =
      "namespace ns { template <class T, int N> __global__ void scale(T* x, T s) { x[N] *= s; } }\n"
      "static __global__ void st(int* x) { *x = 1; }\n"
      "namespace { __global__ void anon(int* x) { *x = 2; } }\n"
      "extern \"C\" __global__ void plain(int* x) { *x = 3; }\n";
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    const ObjectCode declared = Compiler(nvrtc).compile(request_for(text));
    CHECK(kernel_names(declared) == "st,anon,plain");
    const ObjectCode asked = Compiler(nvrtc).compile(
        request_for(text, {"ns::scale<float, 4>", "ns::scale<double, (3 > 2)>", "plain"}));
    CHECK(kernel_names(asked) == "ns::scale<float, 4>,ns::scale<double, (3 > 2)>,plain");
    CHECK(asked.kernel("ns::scale<float, 4>").to_string() ==
          "ns::scale<float, 4>(float* x, float s)");
    CHECK(asked.kernel("plain").lowered == "plain");
    for (const auto& kernel : asked.kernels) CHECK(contains(asked.code, kernel.lowered));
  }
}

TEST_CASE("compiler: kernels behind a false #if are left out, unless asked for") {
  const std::string text =
      "#if 0\n__global__ void hidden() {}\n__device__ int lost;\n#endif\n__global__ void k() {}\n";
  CHECK(kernel_names(compile(request_for(text))) == "k");
  const std::string message = name_error(text, "hidden");
  CHECK(contains(message, "kernel.cu:2"));
  CHECK(contains(message, "#if"));
}

TEST_CASE("compiler: overloads are told apart by type") {
  const std::string text =
      "__global__ void k(float* x) {}\n__global__ void k(int* x, int n) {}\n__global__ void l() {}";
  CHECK(kernel_names(compile(request_for(text))) == "l");
  CHECK(contains(name_error(text, "k"), "overloaded"));
  const auto code = compile(request_for(text, {"(void (*)(int*, int))k"}));
  CHECK(code.kernels.at(0).parameters.size() == 2);
}

TEST_CASE("compiler: unknown names say what there is") {
  CHECK(contains(name_error(kSaxpy, "saxpi"), "did you mean saxpy"));
  CHECK(contains(name_error(kSaxpy, "matmul"), "saxpy"));
  CHECK(contains(name_error("template <class T> __global__ void k(T* x) {}", "k"), "k<float>"));
  CHECK(contains(name_error("__device__ int v; __global__ void k() {}", "v"), "is a variable"));
  for (const char* odd : {"saxpy)", "saxpy; int x", "<", "\"", "saxpy<", "0", "a::b"}) {
    CAPTURE(odd);
    CHECK_THROWS_AS(compile(request_for(kSaxpy, {odd})), Error);
  }
}

TEST_CASE("compiler: names are checked before anything is compiled") {
  const auto refused = [](std::string name) {
    return thrown_by<InvalidArgument>([&] { compile(request_for(kSaxpy, {name})); });
  };
  CHECK(contains(refused("").what(), "empty"));
  CHECK(contains(refused(std::string("a\0b", 3)).what(), "NUL at offset 1"));
  CHECK(contains(refused("a\nb").what(), "line break at offset 1"));
}

TEST_CASE("compiler: an error stands at the user's line, with caret, log and options") {
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    auto request = request_for("__global__ void k(int* x) {\n\tx[0] = y;\n  foo(x);\n}\n");
    request.source.name = "script.py";
    request.source.first_line = 20;
    const auto error = thrown_by<CompileError>([&] { Compiler(nvrtc).compile(request); });
    REQUIRE(error.diagnostics.size() == 2);
    CHECK(error.diagnostics[0].line == 21);
    CHECK(error.diagnostics[0].column == 9);
    CHECK(error.diagnostics[0].file == "script.py");
    CHECK(error.diagnostics[0].caret == "\tx[0] = y;\n\t       ^");
    CHECK(error.diagnostics[1].line == 22);
    CHECK(contains(error.what(), "script.py:21:9: error: identifier \"y\" is undefined"));
    CHECK(contains(error.what(), "2 errors"));
    CHECK(error.source == request.source.text);
    CHECK(std::find(error.options.begin(), error.options.end(), "--gpu-architecture=sm_80") !=
          error.options.end());
    CHECK(contains(error.log, "2 errors detected"));
    CHECK_FALSE(contains(error.log, "kernwright"));
    CHECK_FALSE(contains(error.log, "/dev/null"));
    CHECK_FALSE(contains(error.what(), "kernwright"));
  }
}

TEST_CASE("compiler: an error inside an instantiation is the source's, not the name's") {
  const auto error = compile_error(request_for(
      "template <class T> __global__ void k(T* x) {\n  x[0].foo();\n}\n", {"k<float>"}));
  CHECK(error.diagnostics.at(0).line == 2);
  CHECK(contains(error.diagnostics[0].message, "class type"));
}

TEST_CASE("compiler: errors of the assembler are compile errors") {
  CHECK(
      contains(compile_error(request_for("__global__ void k() { asm(\"bogus.instr;\"); }")).what(),
               "ptxas"));
  const auto shared = compile_error(request_for(
      "__global__ void k(int* x) { __shared__ char s[1000000]; s[x[0]] = 1; x[1] = s[x[2]]; }"));
  CHECK(contains(shared.what(), "too much shared data"));
  CHECK(contains(shared.what(), "extern __shared__"));
}

TEST_CASE("compiler: broken texts of many kinds are compile errors, never worse") {
  for (const std::string text :
       {"__global__ void k(", "}", "{{{{", "__global__ void k() { /* never closed", "#error stop",
        "#if 1\n__global__ void k() {}", "\"", "R\"(", "namespace {", "extern \"C\" {",
        "template <", "#include", "#include <", "__global__ int k() { return 1; }",
        "__global__ void k(int x) { return 1; } int main() { throw 1; }"}) {
    CAPTURE(text);
    const auto error = compile_error(request_for(text));
    CHECK_FALSE(contains(error.what(), "kernwright"));
  }
}

TEST_CASE("compiler: warnings of a good compile are kept") {
  const ObjectCode code = compile(request_for("__global__ void k() {\n  int unused;\n}\n"));
  REQUIRE(code.diagnostics.size() == 1);
  CHECK(code.diagnostics[0].severity == Severity::warning);
  CHECK(code.diagnostics[0].line == 2);
  CHECK(contains(code.log, "unused"));
}

TEST_CASE("compiler: what --minimal leaves out is still there") {
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    for (const char* text :
         {"__global__ void k(int* x) { printf(\"%d\", *x); assert(*x); }",
          "__global__ void k(cudaTextureObject_t t, float* x) { *x = tex2D<float>(t, 1.f, 2.f); }",
          "__global__ void k(float* x) { *x = sinf(*x) + __expf(*x); memcpy(x, x + 1, 4); }",
          "__global__ void k(double* x) { atomicAdd(x, 1.0); __syncthreads(); clock64(); }",
          "__global__ void k(unsigned* x) { *x = __ballot_sync(~0u, __shfl_down_sync(~0u, *x, 1)); "
          "}",
          "struct B { __device__ virtual int f() { return 1; } }; __global__ void k(int* x) { B b; "
          "B* p = &b; *x = p->f(); int* q = new int[3]; delete[] q; }",
          "__global__ void k(dim3 d, float4* x, uint3 u) { *x = make_float4(d.x, u.y, 0, 1); }"}) {
      CAPTURE(text);
      CHECK(Compiler(nvrtc).compile(request_for(text)).kernels.size() == 1);
    }
  }
}

TEST_CASE("compiler: functions without __device__ are the device's") {
  CHECK_NOTHROW(compile(request_for(
      "float twice(float x) { return 2 * x; }\n__global__ void k(float* x) { *x = twice(*x); }")));
  auto request = request_for(
      "#include \"a.h\"\nfloat twice(float x) { return 2 * x; }\n"
      "__global__ void k(float* x) { *x = twice(*x); }");
  request.options.headers = {{"a.h", "constexpr int kOne = 1;\n"}};
  CHECK_NOTHROW(compile(request));
}

TEST_CASE("compiler: headers come from memory, and from no folder that was not named") {
  auto request = request_for("#include \"lib/a.h\"\n__global__ void k(T x) {}");
  request.options.headers = {{"lib/a.h", "#include <b.h>\n"}, {"b.h", "typedef short T;\n"}};
  CHECK(compile(request).kernels.at(0).parameters.at(0).type == "short");
  const TemporaryFolder folder;
  folder.write("near.h", "typedef double T;\n");
  const auto previous = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const auto error = compile_error(request_for("#include \"near.h\"\n__global__ void k(T x) {}"));
  std::filesystem::current_path(previous);
  CHECK(contains(error.what(), "near.h"));
  CHECK(contains(error.what(), "include_dirs"));
}

TEST_CASE("compiler: a source from a file sees the headers beside it") {
  const TemporaryFolder folder;
  folder.write("near.h", "typedef double T;\n");
  auto request = request_for("x");
  request.source =
      Source::from_file(folder.write("k.cu", "#include \"near.h\"\n__global__ void k(T x) {}\n"));
  request.declared = scan_source(request.source.text);
  CHECK(compile(request).kernels.at(0).parameters.at(0).type == "double");
}

TEST_CASE("compiler: a missing header says how to get it") {
  const auto host = compile_error(request_for("#include <vector>\n__global__ void k() {}"));
  CHECK(contains(host.what(), "kernel.cu:1"));
  CHECK(contains(host.what(), "strip_host=True"));
}

TEST_CASE("compiler: what --minimal leaves out is there when the text needs it, and learnt once") {
  const std::string text =
      "#include \"own.h\"\n__global__ void k(int* x) { x[0] = sizeof(Stream); }\n";
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    auto request = request_for(text);
    request.options.headers = {{"own.h", "typedef cudaStream_t Stream;\n"}};
    const auto compiled = [&] { return Compiler(nvrtc).compile(request).trace; };
    CHECK(compiled()->attempts == 2);
    const auto again = compiled();
    CHECK(again->attempts == 1);
    CHECK_FALSE(again->minimal);
    request = request_for(kSaxpy);
    CHECK(compiled()->minimal);
    request.options.minimal = Tristate::off;
    CHECK_FALSE(compiled()->minimal);
  }
}

TEST_CASE("compiler: constants of the host's kind cost no second compile") {
  const std::string text =
      "constexpr int kN = 3; namespace n { const float table[2] = {1, 2}; }\n"
      "static __device__ int hidden = 1;\n"
      "__global__ void k(float* x) { x[0] = kN + hidden + n::table[threadIdx.x % 2]; }\n";
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    const ObjectCode code = Compiler(nvrtc).compile(request_for(text));
    CHECK(code.trace->attempts == 1);
    CHECK(code.symbols.size() == 1);
    const ObjectCode made = Compiler(nvrtc).compile(request_for(
        "#define V __device__ int made = 1;\nV\n__global__ void k(int* x) { *x = made; }"));
    CHECK(made.trace->attempts == 2);
    CHECK(made.symbols.size() == 1);
  }
}

TEST_CASE("compiler: a generous timeout changes nothing, also for errors") {
  auto request = request_for(kSaxpy);
  const std::string code = compile(request).code;
  request.options.timeout = std::chrono::minutes(5);
  CHECK(compile(request).code == code);
  request = request_for("__global__ void k() { x; }");
  request.options.timeout = std::chrono::minutes(5);
  CHECK(contains(compile_error(request).what(), "kernel.cu:1"));
}

TEST_CASE("compiler: every attempt's program is destroyed, whatever happens") {
  for (const nvrtcResult result :
       {NVRTC_SUCCESS, NVRTC_ERROR_COMPILATION, NVRTC_ERROR_BUILTIN_OPERATION_FAILURE,
        NVRTC_ERROR_INTERNAL_ERROR}) {
    const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
    FakeNvrtc::get().compile_result = result;
    FakeNvrtc::get().log = "garbage that is no message\n";
    try {
      Compiler(nvrtc).compile(request_for("__global__ void k() {}"));
      CHECK(result == NVRTC_SUCCESS);
    } catch (const Error&) {
      CHECK(result != NVRTC_SUCCESS);
    }
    CHECK(FakeNvrtc::get().created > 0);
    CHECK(FakeNvrtc::get().created == FakeNvrtc::get().destroyed);
  }
}

TEST_CASE("compiler: a compiler that never agrees is given up") {
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  FakeNvrtc::get().compile_result = NVRTC_ERROR_COMPILATION;
  FakeNvrtc::get().log = "kernwright_probe(3): error: no\n";
  const auto error = thrown_by<CompileError>(
      [&] { Compiler(nvrtc).compile(request_for("__global__ void k() {}")); });
  CHECK(FakeNvrtc::get().compiled < 10);
  CHECK(contains(error.what(), "did not compile"));
}

TEST_CASE("compiler: types are asked for again when a text was blamed for what passed by") {
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  FakeNvrtc::get().log = "Catastrophic error: unable to obtain mapped memory\n";
  // With --minimal, without it, then without the probe, and with it once more.
  FakeNvrtc::get().failing = {0, 1};
  const auto saved = Compiler(nvrtc).compile(request_for("__global__ void k() {}"));
  CHECK(saved.trace->attempts == 4);
  CHECK_FALSE(saved.trace->is_provisional);
  CHECK(contains(FakeNvrtc::get().source, "kernwright_probe"));
  FakeNvrtc::get().compiled = 0;
  FakeNvrtc::get().failing = {0, 1, 3};
  const auto provisional = Compiler(nvrtc).compile(request_for("__global__ void k() {}"));
  CHECK(provisional.trace->attempts == 5);
  CHECK(provisional.trace->is_provisional);
}

TEST_CASE("compiler: bad sources and options are refused before the compiler sees them") {
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  auto request = request_for("x");
  request.source.text = std::string("__global__\0", 11);
  CHECK_THROWS_AS(Compiler(nvrtc).compile(request), InvalidArgument);
  request = request_for("x");
  request.options.extra = {"oops"};
  CHECK_THROWS_AS(Compiler(nvrtc).compile(request), InvalidArgument);
  CHECK(FakeNvrtc::get().created == 0);
}

TEST_CASE("compiler: options that NVRTC's own cache does not notice count") {
  const auto code = [](std::vector<std::string> extra) {
    CompileRequest request =
        request_for("__global__ void f(float* x) { x[2] = x[0] / x[1]; }", {}, CodeKind::cubin);
    request.options.extra = std::move(extra);
    return compile(request).code;
  };
  for (int i = 0; i < 2; ++i) {  // a second time, when every result may have been kept
    const std::string plain = code({});
    CHECK(code({"--ftz=true"}) != plain);
    CHECK(code({"--prec-div=false"}) != plain);
    CHECK(code({"--no-cache"}) == plain);
  }
}
