// The texts given to the compiler.
#include "jit/compile/compiler_texts.h"

#include <doctest/doctest.h>

#include "jit/source/host_headers.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

CompilerTexts texts_of(const Source& source, const ProgramOptions& options = {}) {
  return compiler_texts(source, options, include_closure(source, options));
}

Source source_of(const std::string& text) {
  Source source;
  source.text = text;
  return source;
}

}  // namespace

TEST_CASE("compiler texts: a header of the host gets a text, the user's own wins") {
  const Source source = source_of("#include <cstdint>\n#include \"math.h\"\n#include <none.h>\n");
  const CompilerTexts texts = texts_of(source);
  CHECK(texts.headers.size() == 2);
  CHECK(contains(texts.headers.at("cstdint"), "uint32_t"));
  ProgramOptions options;
  options.headers["cstdint"] = "int mine;";
  CHECK(texts_of(source, options).headers.at("cstdint") == "int mine;");
  const TemporaryFolder folder;
  folder.write("math.h", "int mine;");
  options.include_dirs = {folder.path().string()};
  CHECK(!texts_of(source, options).headers.contains("math.h"));
  CHECK(texts_of(source_of("int x;")).headers.empty());
}

TEST_CASE("compiler texts: what such a text includes comes along") {
  CHECK(texts_of(source_of("#include <inttypes.h>\n")).headers.contains("stdint.h"));
}

TEST_CASE("compiler texts: includes of the host alone vanish with its code") {
  const Source source = source_of(
      "#include <iostream>\n#include \"helper_cuda.h\"\n#include <cuda_fp16.h>\n"
      "#include \"mine.h\"\nint main() {}\n__global__ void k() {}\n");
  CHECK(texts_of(source).headers.empty());
  ProgramOptions options;
  options.strip_host = true;
  const CompilerTexts texts = texts_of(source, options);
  CHECK(texts.headers.contains("iostream"));
  CHECK(texts.headers.contains("helper_cuda.h"));
  CHECK(!texts.headers.contains("cuda_fp16.h"));
  CHECK(!texts.headers.contains("mine.h"));
  CHECK(!contains(texts.text, "main"));
  CHECK(contains(texts.text, "__global__ void k() {}"));
}

TEST_CASE("compiler texts: files that cannot be read as they are come from memory") {
  const TemporaryFolder folder;
  const std::string path = folder.write("in\"ner/a.h", "#include \"b.h\"\n").string();
  folder.write("in\"ner/b.h", "\xef\xbb\xbf#define V 1\n");
  Source source = source_of("#include \"in\"\n");
  ProgramOptions options;
  options.include_dirs = {(folder.path() / "in\"ner").string()};
  source.text = "#include <a.h>\n";
  const CompilerTexts texts = texts_of(source, options);
  const std::string alias = compiler_name(path);
  CHECK(alias.find('"') == std::string::npos);
  CHECK(user_name(alias) == path);
  CHECK(texts.text == "#include <" + alias + ">\n");
  CHECK(texts.headers.at(compiler_name((folder.path() / "in\"ner/b.h").string())) ==
        "#define V 1\n");
  CHECK(contains(texts.headers.at(alias), "b.h"));
  folder.write("plain/a.h", "int x;");
  options.include_dirs = {(folder.path() / "plain").string()};
  CHECK(texts_of(source, options).headers.empty());
}

TEST_CASE("host headers: every one of them compiles, alone and all together") {
  const auto compiles = [](const std::string& text) {
    CompileRequest request = request_for(text);
    const IncludeClosure included = include_closure(request.source, request.options);
    if (included.needs_cuda_headers) return true;  // needs CUDA's C++ library: tested in Python
    return Compiler(newest_nvrtc()).compile(request).kernels.size() == 1;
  };
  const std::string kernel = "__global__ void k(int* x) { *x = 1; }\n";
  std::string all;
  for (const char* name : {"stdint.h",       "cstdint",
                           "inttypes.h",     "cinttypes",
                           "limits.h",       "climits",
                           "float.h",        "cfloat",
                           "stddef.h",       "cstddef",
                           "math.h",         "cmath",
                           "stdio.h",        "cstdio",
                           "string.h",       "cstring",
                           "stdlib.h",       "cstdlib",
                           "time.h",         "ctime",
                           "assert.h",       "cassert",
                           "stdbool.h",      "cuda.h",
                           "cuda_runtime.h", "device_launch_parameters.h",
                           "vector_types.h", "crt/host_defines.h"}) {
    CAPTURE(name);
    REQUIRE(host_header(name));
    const std::string line = "#include <" + std::string(name) + ">\n";
    all += line;
    CHECK(compiles(line + kernel));
  }
  CHECK(compiles(all + all + kernel));
  CHECK(!host_header("iostream"));
  CHECK(!host_header(""));
  CHECK(host_header_needs_library("type_traits"));
  CHECK(!host_header_needs_library("cmath"));
}
