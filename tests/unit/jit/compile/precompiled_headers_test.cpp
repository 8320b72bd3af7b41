// Precompiled headers: made, used and refused. They never change a result.
#include "jit/compile/precompiled_headers.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/errors.h"
#include "jit/compile/compile_trace.h"
#include "jit/source/cuda_headers.h"
#include "unit/jit/fake_nvrtc.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

std::size_t fake_heap = 0;

/// The fake with a heap; its address space ends at 1 GiB.
LoadedNvrtc fake_with_heap() {
  LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  fake_heap = std::size_t{256} << 20;
  nvrtc.api.nvrtcGetPCHHeapSize = [](std::size_t* bytes) {
    *bytes = fake_heap;
    return NVRTC_SUCCESS;
  };
  nvrtc.api.nvrtcSetPCHHeapSize = [](std::size_t bytes) {
    if (bytes > std::size_t{1} << 30) return NVRTC_ERROR_OUT_OF_MEMORY;
    fake_heap = bytes;
    return NVRTC_SUCCESS;
  };
  return nvrtc;
}

Hash128 stage_key(int number) { return hash_text(std::to_string(number)); }

PchUse use_of(const ObjectCode& code) { return code.trace->pch; }

/// A kernel with a name of its own: every compile is a new one.
CompileRequest fp16_request(const LoadedNvrtc& nvrtc, int number) {
  auto request =
      request_for("#include <cuda_fp16.h>\n#define FACTOR " + std::to_string(number + 2) +
                      "\n__global__ void k" + std::to_string(number) +
                      "(__half* x) {\n  x[0] = x[0] * __half(FACTOR);\n}\n",
                  {}, CodeKind::cubin);
  request.header_folders = cuda_headers(nvrtc).folders;
  return request;
}

}  // namespace

TEST_CASE("precompiled headers: made by the second request, used by the third") {
  const LoadedNvrtc nvrtc = fake_with_heap();
  PrecompiledHeaders headers;
  CHECK(headers.plan(nvrtc, stage_key(1), Tristate::automatic).use == PchUse::none);
  CHECK(headers.folder().empty());
  const PchPlan making = headers.plan(nvrtc, stage_key(1), Tristate::automatic);
  CHECK(making.use == PchUse::make);
  CHECK(fake_heap == std::size_t{1} << 30);
  struct stat status {};
  REQUIRE(::stat(headers.folder().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  // Meanwhile others compile without.
  CHECK(headers.plan(nvrtc, stage_key(1), Tristate::automatic).use == PchUse::none);
  headers.done(making, NVRTC_SUCCESS, false);
  const PchPlan using_it = headers.plan(nvrtc, stage_key(1), Tristate::automatic);
  CHECK(using_it.use == PchUse::use);
  CHECK(using_it.folder == making.folder);
  CHECK(headers.plan(nvrtc, stage_key(1), Tristate::off).use == PchUse::none);
  CHECK(headers.plan(nvrtc, stage_key(2), Tristate::automatic).use == PchUse::none);
}

TEST_CASE("precompiled headers: on request at once") {
  const LoadedNvrtc nvrtc = fake_with_heap();
  PrecompiledHeaders headers;
  CHECK(headers.plan(nvrtc, stage_key(1), Tristate::on).use == PchUse::make);
}

TEST_CASE("precompiled headers: the slow path is never taken twice") {
  const LoadedNvrtc nvrtc = fake_with_heap();
  PrecompiledHeaders headers;
  headers.done(headers.plan(nvrtc, stage_key(1), Tristate::on), NVRTC_ERROR_PCH_CREATE, false);
  CHECK(headers.plan(nvrtc, stage_key(1), Tristate::on).use == PchUse::none);
  const PchPlan good = headers.plan(nvrtc, stage_key(2), Tristate::on);
  headers.done(good, NVRTC_SUCCESS, false);
  headers.done(headers.plan(nvrtc, stage_key(3), Tristate::on),
               NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED, false);
  // With a full heap, existing headers are used, and no new ones are made.
  CHECK(headers.plan(nvrtc, stage_key(4), Tristate::on).use == PchUse::none);
  CHECK(headers.plan(nvrtc, stage_key(2), Tristate::on).use == PchUse::use);
  // After NVRTC refused one, it is used no more.
  headers.done(headers.plan(nvrtc, stage_key(2), Tristate::on), NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED,
               false);
  CHECK(headers.plan(nvrtc, stage_key(2), Tristate::on).use == PchUse::none);
}

TEST_CASE("precompiled headers: an NVRTC that knows none gets none") {
  const LoadedNvrtc nvrtc = FakeNvrtc::get().reset();
  PrecompiledHeaders headers;
  CHECK(headers.plan(nvrtc, stage_key(1), Tristate::on).use == PchUse::none);
  CHECK(headers.folder().empty());
}

TEST_CASE("precompiled headers: where their heap cannot be had a compile goes on without") {
  LoadedNvrtc nvrtc = fake_with_heap();
  nvrtc.api.nvrtcGetPCHCreateStatus = [](nvrtcProgram) {
    return NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED;
  };
  FakeNvrtc& fake = FakeNvrtc::get();
  fake.log =
      "\n warning: PCH Heap initialization with size 4294967296 failed, precompiled header "
      "processing may not work as expectedCatastrophic error: unable to obtain mapped memory\n";
  fake.failing = {0};
  auto request = request_for("#include \"a.h\"\n__global__ void k() {}\n");
  request.options.headers = {{"a.h", "int a;\n"}};
  request.options.pch = Tristate::on;
  const ObjectCode code = Compiler(nvrtc).compile(request);
  CHECK(code.trace->attempts == 2);
  CHECK(code.trace->minimal);
  CHECK_FALSE(code.trace->is_provisional);
  CHECK(use_of(code) == PchUse::none);
  CHECK(contains(fake.source, "kernwright_probe"));
  // Other headers find the heap as it is.
  request.options.headers = {{"a.h", "int b;\n"}};
  CHECK(Compiler(nvrtc).compile(request).trace->attempts == 1);
  CHECK(std::none_of(fake.options.begin(), fake.options.end(),
                     [](const std::string& option) { return option == "--pch"; }));
}

TEST_CASE("precompiled headers: code is the same byte for byte, with and without") {
  for (const LoadedNvrtc& nvrtc : nvrtcs_from(12, 8)) {
    for (const bool with_lines : {false, true}) {
      CAPTURE(nvrtc.version());
      auto request = fp16_request(nvrtc, with_lines ? 1 : 0);
      request.options.lineinfo = with_lines;
      request.options.pch = Tristate::off;
      const ObjectCode plain = Compiler(nvrtc).compile(request);
      CHECK(use_of(plain) == PchUse::none);
      request.options.pch = Tristate::on;
      const ObjectCode made = Compiler(nvrtc).compile(request);
      const ObjectCode used = Compiler(nvrtc).compile(request);
      CHECK(use_of(made) == PchUse::make);
      CHECK(use_of(used) == PchUse::use);
      CHECK(made.code == plain.code);
      CHECK(used.code == plain.code);
      CHECK(used.log == plain.log);
      CHECK(used.log.empty());
    }
  }
}

TEST_CASE("precompiled headers: macros behind the includes do not keep texts apart") {
  for (const LoadedNvrtc& nvrtc : nvrtcs_from(12, 8)) {
    auto request = fp16_request(nvrtc, 10);
    request.options.defines = {{"ONLY_HERE", nvrtc.version()}};
    CHECK(use_of(Compiler(nvrtc).compile(request)) == PchUse::none);
    for (const PchUse expected : {PchUse::make, PchUse::use, PchUse::use}) {
      auto next = fp16_request(nvrtc, 10 + static_cast<int>(expected));
      next.options.defines = request.options.defines;
      CHECK(use_of(Compiler(nvrtc).compile(next)) == expected);
    }
  }
}

TEST_CASE("precompiled headers: a header in memory that changed is seen") {
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    auto request = request_for("#include \"a.h\"\n__global__ void k(T* x) { x[0] = 1; }\n");
    request.options.pch = Tristate::on;
    for (const std::string type : {"float", "int", "float", "double"}) {
      request.options.headers = {{"a.h", "typedef " + type + " T;\n"}};
      CHECK(Compiler(nvrtc).compile(request).kernels.at(0).parameters.at(0).type == type + "*");
    }
  }
}

TEST_CASE("precompiled headers: a header file that changed is seen") {
  const TemporaryFolder folder;
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    auto request = request_for("#include <b.h>\n__global__ void k(T* x) { x[0] = 1; }\n");
    request.options.pch = Tristate::on;
    request.options.include_dirs = {folder.path().string()};
    for (const std::string type : {"float", "int", "float", "double"}) {
      folder.write("b.h", "typedef " + type + " T;\n");
      CHECK(Compiler(nvrtc).compile(request).kernels.at(0).parameters.at(0).type == type + "*");
    }
  }
}

TEST_CASE("precompiled headers: none where only the preprocessor knows what is included") {
  const TemporaryFolder folder;
  auto request =
      request_for("#define H <c.h>\n#include H\n__global__ void k(T* x) { x[0] = 1; }\n");
  request.options.pch = Tristate::on;
  request.options.include_dirs = {folder.path().string()};
  for (const std::string type : {"float", "int", "double"}) {
    folder.write("c.h", "typedef " + type + " T;\n");
    const ObjectCode code = Compiler(newest_nvrtc()).compile(request);
    CHECK(code.kernels.at(0).parameters.at(0).type == type + "*");
    CHECK(use_of(code) == PchUse::none);
  }
}

TEST_CASE("precompiled headers: lines and names of messages stay those of the text") {
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    for (const Tristate pch : {Tristate::off, Tristate::on, Tristate::on}) {
      auto request = request_for(
          "#include \"a.h\"\n#define N 3\n__global__ void k(int* x) {\n  int unused;\n  x[0] = N;\n"
          "}\n");
      request.options.headers = {{"a.h", "struct A {};\n"}};
      request.options.pch = pch;
      request.source.name = "my.py";
      request.source.first_line = 11;
      const ObjectCode good = Compiler(nvrtc).compile(request);
      REQUIRE(good.diagnostics.size() == 1);
      CHECK(good.diagnostics[0].file == "my.py");
      CHECK(good.diagnostics[0].line == 14);
      CHECK_FALSE(contains(good.log, "precompiled"));
      CHECK_FALSE(contains(good.log, "#line"));
      request.source.text = "#include \"a.h\"\n#include \"none.h\"\n__global__ void k() {}\n";
      const auto error = thrown_by<CompileError>([&] { Compiler(nvrtc).compile(request); });
      REQUIRE(error.diagnostics.size() == 1);
      CHECK(error.diagnostics[0].file == "my.py");
      CHECK(error.diagnostics[0].line == 12);
      CHECK_FALSE(contains(error.log, "/dev/null"));
    }
  }
}
