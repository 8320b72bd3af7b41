// A worker compiles what the process itself would, and a compile without end ends.
#include "worker/compile_task.h"

#include <doctest/doctest.h>

#include "tests/unit/worker/compile_fixture.h"

using namespace kernwright;
using namespace worker_test;

TEST_CASE("compile task: the same code as in this process, byte for byte") {
  Worker worker(test_program());
  for (const CodeKind kind : {CodeKind::cubin, CodeKind::ptx}) {
    CompileRequest request = request_for(
        "#include \"v.h\"\ntemplate <class T> __global__ void f(T* x) { x[0] = V + N; }\n"
        "__global__ void g(const float* x, int unused) {}\n__device__ int count[3];",
        kind);
    request.options.headers["v.h"] = "#define V 3\n";
    request.options.defines["N"] = "4";
    request.options.max_registers = 32;
    request.names = {"f<double>"};
    const ObjectCode there = code_from(worker, request);
    const ObjectCode here = Compiler(nvrtc()).compile(request);
    CHECK(there.code == here.code);
    CHECK(there.log == here.log);
    CHECK(there.kernel("f<double>").to_string() == here.kernel("f<double>").to_string());
    CHECK(there.kernel("g").to_string() == "g(const float* x, int unused)");
    CHECK(there.symbols == here.symbols);
  }
  CHECK(worker.starts() == 1);
}

TEST_CASE("compile task: every option counts in the worker") {
  Worker worker(test_program());
  const auto compile = [&](const auto& set) {
    CompileRequest request = request_for(
        "#include <vector>\n__global__ void f(float* x, int n) { x[n] = x[0] / x[1] + N; }\n"
        "int main() { return 0; }\n",
        CodeKind::cubin);
    request.options.strip_host = true;
    request.options.defines["N"] = "1";
    set(request.options);
    const ObjectCode there = code_from(worker, request);
    CHECK(there.code == Compiler(nvrtc()).compile(request).code);
    return there.code;
  };
  const std::string plain = compile([](ProgramOptions&) {});
  CHECK(compile([](ProgramOptions& o) { o.fast_math = true; }) != plain);
  CHECK(compile([](ProgramOptions& o) { o.lineinfo = true; }) != plain);
  CHECK(compile([](ProgramOptions& o) { o.device_debug = true; }) != plain);
  CHECK(compile([](ProgramOptions& o) { o.max_registers = 24; }) != plain);
  CHECK(compile([](ProgramOptions& o) { o.opt_level = 0; }) != plain);
  CHECK(compile([](ProgramOptions& o) { o.defines["N"] = "2"; }) != plain);
  CHECK(compile([](ProgramOptions& o) { o.extra = {"--ftz=true"}; }) != plain);
}

TEST_CASE("compile task: the members of structs are told where they are wanted") {
  Worker worker(test_program());
  CompileRequest request = request_for(
      "struct Pair { float a, b; };\n__global__ void f(Pair p, float* x) { *x = p.b; }\n",
      CodeKind::ptx);
  for (const std::size_t members : {2, 0}) {
    request.with_members = members > 0;
    const ObjectCode code = code_from(worker, request);
    CHECK(code.kernel("f").parameters.at(0).fields.size() == members);
  }
}

TEST_CASE("compile task: errors are those of the compiler") {
  Worker worker(test_program());
  try {
    code_from(worker, request_for("__global__ void f() {\n  x = 1; }", CodeKind::ptx));
    FAIL("no exception");
  } catch (const CompileError& e) {
    REQUIRE(e.diagnostics.size() == 1);
    CHECK(e.diagnostics[0].line == 2);
  }
  CompileRequest unknown = request_for("__global__ void f() {}", CodeKind::ptx);
  unknown.names = {"g"};
  CHECK_THROWS_AS(code_from(worker, unknown), NameNotFound);
  CHECK_THROWS_AS(code_from(worker, unknown, "/nowhere/libnvrtc.so"), NvrtcNotFound);
}
