// Headers in memory see each other, not the current folder.
#include "jit/source/memory_headers.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

TEST_CASE("memory headers: quoted names of others are put into brackets, lines stay") {
  const MemoryHeaders headers = without_current_folder(
      {{"a.h", "#include \"b.h\"\n#inc\\\nlude \"c.h\"\nconst char* s = \"b.h\";\n"},
       {"b.h", "int b;\n"},
       {"sub/d.h", "#include \"e.h\"\n#if __has_include(\"../b.h\")\n#endif\n"},
       {"sub/e.h", ""}});
  CHECK(headers.at("a.h") == "#include <b.h>\n#include <c.h>\n\nconst char* s = \"b.h\";\n");
  CHECK(headers.at("b.h") == "int b;\n");
  CHECK(headers.at("sub/d.h") == "#include <sub/e.h>\n#if __has_include(<b.h>)\n#endif\n");
  CHECK(without_current_folder({}).empty());
}

TEST_CASE("memory headers: a file of the current folder is not read for them") {
  const TemporaryFolder folder;
  folder.write("here.h", "typedef double T;\n");
  const auto previous = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  auto request = request_for("#include \"a.h\"\n__global__ void k(T x) {}\n");
  for (const char* text :
       {"#include \"here.h\"\n", "#if __has_include(\"here.h\")\ntypedef double T;\n#endif\n"}) {
    request.options.headers = {{"a.h", text}};
    CHECK_THROWS_AS(Compiler(newest_nvrtc()).compile(request), CompileError);
  }
  request.options.headers = {{"sub/a.h", "#include \"here.h\"\n"},
                             {"sub/here.h", "typedef float T;\n"}};
  request.source.text = "#include \"sub/a.h\"\n__global__ void k(T x) {}\n";
  CHECK(Compiler(newest_nvrtc()).compile(request).kernels.at(0).parameters.at(0).type == "float");
  std::filesystem::current_path(previous);
}
