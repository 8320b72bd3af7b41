// Following of #include lines.
#include "jit/cache/include_closure.h"

#include <doctest/doctest.h>

#include "base/errors.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

Source text(std::string source_text) {
  Source source;
  source.text = std::move(source_text);
  return source;
}

}  // namespace

TEST_CASE("include closure: a text that includes nothing needs nothing") {
  const auto closure = include_closure(text("__global__ void k() {} // include"), {});
  CHECK(closure.files.empty());
  CHECK_FALSE(closure.needs_cuda_headers);
}

TEST_CASE("include closure: headers in memory are enough by themselves") {
  ProgramOptions options;
  options.headers = {{"a.h", "#include \"b.h\"\n"}, {"b.h", "int b;"}};
  CHECK_FALSE(include_closure(text("#include \"a.h\"\n"), options).needs_cuda_headers);
  options.headers["b.h"] = "#include <cuda_fp16.h>\n";
  CHECK(include_closure(text("#include \"a.h\"\n"), options).needs_cuda_headers);
  CHECK(include_closure(text("#include <cuda_fp16.h>\n"), {}).needs_cuda_headers);
}

TEST_CASE("include closure: what asks for one architecture alone is seen in every text") {
  const std::string tensor = "__device__ void f() { asm volatile(\"wgmma.fence.sync.aligned;\"); }";
  const TemporaryFolder folder;
  folder.write("inc/a.h", tensor);
  ProgramOptions options;
  options.headers = {{"b.h", tensor}};
  CHECK(include_closure(text(tensor), {}).asks_for_arch_specific);
  CHECK(include_closure(text("#include \"b.h\"\n"), options).asks_for_arch_specific);
  options.headers = {{"b.h", "int b;"}};
  CHECK_FALSE(include_closure(text("#include \"b.h\"\n"), options).asks_for_arch_specific);
  options.include_dirs = {(folder.path() / "inc").string()};
  CHECK_FALSE(include_closure(text("#include \"b.h\"\n"), options).asks_for_arch_specific);
  CHECK(include_closure(text("#include \"a.h\"\n"), options).asks_for_arch_specific);
}

TEST_CASE("include closure: files are followed, once each, and hashed") {
  const TemporaryFolder folder;
  folder.write("inc/a.h", "#include \"sub/b.h\"\n#include <c.h>\n");
  folder.write("inc/sub/b.h", "#include \"d.h\"\n#include \"../a.h\"\n");
  folder.write("inc/sub/d.h", "int d;");
  const auto c = folder.write("other/c.h", "int c;");
  ProgramOptions options;
  options.include_dirs = {(folder.path() / "inc").string(), (folder.path() / "other").string()};
  const auto before = include_closure(text("#include <a.h>\n"), options);
  REQUIRE(before.files.size() == 4);
  CHECK_FALSE(before.needs_cuda_headers);
  folder.write("other/c.h", "int c2;");
  const auto after = include_closure(text("#include <a.h>\n"), options);
  int changed = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(before.files[i].path == after.files[i].path);
    if (before.files[i].hash != after.files[i].hash) {
      ++changed;
      CHECK(before.files[i].path == c.string());
    }
  }
  CHECK(changed == 1);
}

TEST_CASE("include closure: quoted includes look beside the source file first") {
  const TemporaryFolder folder;
  const auto source = Source::from_file(folder.write("k.cu", "#include \"beside.h\"\n"));
  folder.write("beside.h", "int x;");
  CHECK(include_closure(source, {}).files.size() == 1);
  CHECK(include_closure(text(source.text), {}).files.empty());
}

TEST_CASE("include closure: absolute paths are refused with their line") {
  Source source = text("\n#include \"/etc/passwd\"\n");
  source.name = "my.py";
  source.first_line = 40;
  const auto error = thrown_by<InvalidArgument>([&] { include_closure(source, {}); });
  CHECK(contains(error.what(), "my.py:41"));
  CHECK(contains(error.what(), "/etc/passwd"));
}
