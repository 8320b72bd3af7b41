// Following of #include lines.
#include "jit/source/include_closure.h"

#include <doctest/doctest.h>

#include <filesystem>

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

TEST_CASE("include closure: what could reach any file is refused, whether it is there or not") {
  const std::string strings = "#define S(x) #x\n#define HI __has_include\n";
  for (const std::string line :
       {"#include \"../x.h\"", "#include <a/../../x.h>", "%:include \"/etc/hostname\"",
        "#define H \"/etc/hostname\"\n#include H", "#define G <../x>\n#define H G\n#include H",
        "#include S(/etc/hostname)", "#if __has_include(\"/etc/passwd\")\n#endif",
        "#if __has_include(<../../no/such/file>)\n#endif", "#if HI(\"/etc/passwd\")\n#endif",
        "int q = HI(\"/etc/passwd\");", "#if __has_include(S(/etc/passwd))\n#endif",
        "#embed \"/etc/passwd\"", "#define N \"/etc/passwd\"\n#if HI(N)\n#endif"}) {
    CHECK_THROWS_AS_MESSAGE(include_closure(text(strings + line + "\n"), {}), InvalidArgument,
                            line);
    ProgramOptions options;
    options.headers = {{"a.h", strings + line + "\n"}};
    CHECK_THROWS_AS_MESSAGE(include_closure(text("#include \"a.h\"\n"), options), InvalidArgument,
                            line);
  }
  ProgramOptions options;
  options.defines = {{"H", "\"/etc/hostname\""}};
  CHECK_THROWS_AS(include_closure(text("#include H\n"), options), InvalidArgument);
  options.defines = {{"HI", "__has_include"}};
  CHECK_THROWS_AS(include_closure(text("int q = HI(\"/etc/passwd\");"), options), InvalidArgument);
  options.defines.clear();
  options.extra = {"-DH=<../x.h>"};
  CHECK_THROWS_AS(include_closure(text("#include H\n"), options), InvalidArgument);
}

TEST_CASE("include closure: names that macros hold are followed") {
  const TemporaryFolder folder;
  folder.write("v.h", "#define W \"w.h\"\n");
  folder.write("w.h", "int w;");
  ProgramOptions options;
  options.include_dirs = {folder.path().string()};
  const auto closure =
      include_closure(text("#define A \"v.h\"\n#define H A\n#include H\n#include W\n"), options);
  CHECK(closure.files.size() == 2);
  CHECK(closure.is_complete);
  options.defines = {{"D", "<w.h>"}};
  CHECK(include_closure(text("#include D\n"), options).files.size() == 1);
  CHECK(include_closure(text("#ifdef NONE\n#include NONE\n#endif\n"), options).is_complete);
}

TEST_CASE("include closure: a file may climb and compute names; then it is not complete") {
  const TemporaryFolder folder;
  folder.write("common/x.h", "int x;");
  folder.write("common/y.h", "#define S(x) #x\n#include S(x.h)\n");
  const auto climbing = Source::from_file(folder.write("src/k.cu", "#include \"../common/x.h\"\n"));
  CHECK(include_closure(climbing, {}).files.at(0).path == (folder.path() / "common/x.h").string());
  const auto computing =
      Source::from_file(folder.write("src/c.cu", "#include \"../common/y.h\"\n"));
  CHECK_FALSE(include_closure(computing, {}).is_complete);
}

TEST_CASE("include closure: links are followed as the system does") {
  const TemporaryFolder folder;
  folder.write("inc/v.h", "int wrong;");
  folder.write("other/v.h", "int right;");
  folder.write("other/dir/x.h", "");
  folder.write("inc/h.h", "#include \"link/../v.h\"\n");
  std::filesystem::create_directory_symlink(folder.path() / "other/dir",
                                            folder.path() / "inc/link");
  ProgramOptions options;
  options.include_dirs = {(folder.path() / "inc").string()};
  const auto closure = include_closure(text("#include <h.h>\n"), options);
  REQUIRE(closure.files.size() == 2);
  CHECK(closure.files[1].path ==
        (std::filesystem::canonical(folder.path()) / "other/v.h").string());
}

TEST_CASE("include closure: include_next may mean any of the folders") {
  const TemporaryFolder folder;
  folder.write("a/n.h", "#include_next <n.h>\n");
  folder.write("b/n.h", "int n;");
  ProgramOptions options;
  options.include_dirs = {(folder.path() / "a").string(), (folder.path() / "b").string()};
  CHECK(include_closure(text("#include <n.h>\n"), options).files.size() == 2);
}

TEST_CASE("include closure: a header that is no regular file is refused, not waited for") {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/zero", folder.path() / "z.h");
  ProgramOptions options;
  options.include_dirs = {folder.path().string()};
  const auto error =
      thrown_by<InvalidArgument>([&] { include_closure(text("#include <z.h>\n"), options); });
  CHECK(contains(error.what(), "no regular file"));
}
