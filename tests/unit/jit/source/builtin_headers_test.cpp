// The library's own device headers: found by every source, and overruled by the user's.
#include "jit/source/builtin_headers.h"

#include <doctest/doctest.h>

#include "base/errors.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

Source source_of(const std::string& text) {
  Source source;
  source.text = text;
  return source;
}

std::string names_for(const Source& source, ProgramOptions options = {}) {
  std::string names;
  for (const auto& [name, text] : with_builtin_headers(source, std::move(options)).headers) {
    if (name.starts_with("kernwright/test")) names += name.substr(15) + " ";
  }
  return names;
}

void add_headers() {
  add_builtin_header("kernwright/test_a.cuh", "#include <kernwright/test_b.cuh>\n");
  add_builtin_header("kernwright/test_b.cuh", "typedef short B;\n");
  add_builtin_header("kernwright/test_c.cuh", "typedef int C;\n");
}

}  // namespace

TEST_CASE("builtin headers: a source gets what it includes, and what that includes") {
  add_headers();
  CHECK(names_for(source_of("int x;\n")).empty());
  CHECK(names_for(source_of("#include <kernwright/test_c.cuh>\n")) == "_c.cuh ");
  CHECK(names_for(source_of("#include \"kernwright/test_a.cuh\"\n")) == "_a.cuh _b.cuh ");
  ProgramOptions options;
  options.headers = {{"mine.h", "#include <kernwright/test_b.cuh>\n"}};
  CHECK(names_for(source_of("#include \"mine.h\"\n"), options) == "_b.cuh ");
  Source file = source_of("#include \"near.h\"\n");
  file.directory = "/";
  CHECK(names_for(file) == "_a.cuh _b.cuh _c.cuh ");
}

TEST_CASE("builtin headers: the user's of the same name wins") {
  add_headers();
  ProgramOptions options;
  options.headers = {{"kernwright/test_b.cuh", "typedef double B;\n"}};
  const auto merged =
      with_builtin_headers(source_of("#include <kernwright/test_a.cuh>\n"), options);
  CHECK(merged.headers.at("kernwright/test_b.cuh") == "typedef double B;\n");
  CHECK(merged.headers.size() == 2);
}

TEST_CASE("builtin headers: they compile, and a wrong name lists them") {
  add_headers();
  auto request = request_for("#include <kernwright/test_a.cuh>\n__global__ void k(B b) {}\n");
  request.options = with_builtin_headers(request.source, request.options);
  CHECK(Compiler(newest_nvrtc()).compile(request).kernels.at(0).parameters.at(0).type == "short");
  const auto error = thrown_by<CompileError>([] {
    Compiler(newest_nvrtc())
        .compile(request_for("#include <kernwright/none.cuh>\n__global__ void k() {}\n"));
  });
  CHECK(contains(error.what(), "kernwright/test_c.cuh"));
  CHECK_THROWS_AS(add_builtin_header("other/a.cuh", ""), InvalidArgument);
}

TEST_CASE("builtin headers: a missing header of CUDA says which package brings it") {
  const auto hint = [](const std::string& header) -> std::string {
    return thrown_by<CompileError>([&] {
             Compiler(newest_nvrtc())
                 .compile(request_for("#include <" + header + ">\n__global__ void k() {}\n"));
           })
        .what();
  };
  CHECK(contains(hint("cuda_fp16.h"), "nvidia-cuda-runtime"));
  CHECK(contains(hint("mma.h"), "nvidia-cuda-runtime"));
  CHECK(contains(hint("cub/block/block_reduce.cuh"), "nvidia-cuda-cccl"));
  CHECK(contains(hint("cuda/barrier"), "nvidia-cuda-cccl"));
  CHECK(contains(hint("curand_kernel.h"), "kernwright/philox.cuh"));
}
