// Free-form options: refusals with a reason, all others reach the compiler, and the next compile
// works.
#include "jit/source/extra_options.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "base/errors.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;
namespace fs = std::filesystem;

namespace {

std::string refusal(const std::string& option) {
  return thrown_by<InvalidArgument>([&] { check_extra_option(option); }).what();
}

const std::string kKernel = "__global__ void k(int* x) { x[0] = 1; }\n";

std::set<std::string> files_here() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(".")) names.insert(entry.path().string());
  return names;
}

}  // namespace

TEST_CASE("extra options: those that write files are refused, with what to do") {
  for (const char* option :
       {"--create-pch=/tmp/a.pch", "-pch-dir=/tmp", "--pch-dir=.", "--time=/tmp/t.csv", "-time=-",
        "--fdevice-time-trace=/tmp/t.json", "-keep", "--keep-dir=.", "-o", "--output-file=a",
        "--use-bundled-headers=/tmp", "--ptxas-options=-o,/tmp/x", "-Xptxas=--output-file=/tmp/x",
        "--ptxas-options=-v,-o /tmp/x", "--ptxas-options -o=x", "--save-temps"}) {
    CAPTURE(option);
    CHECK(contains(refusal(option), "writes"));
  }
}

TEST_CASE("extra options: fields and files that no cache would know of are refused") {
  CHECK(contains(refusal("-I/tmp"), "include_dirs"));
  CHECK(contains(refusal("--include-path=/tmp"), "include_dirs"));
  CHECK(contains(refusal("--gpu-architecture=sm_90"), "`arch`"));
  CHECK(contains(refusal("--minimal"), "`minimal`"));
  CHECK(contains(refusal("--pre-include=a.h"), "#include"));
  CHECK(contains(refusal("--use-pch=a.pch"), "`pch`"));
  CHECK(contains(refusal("--dlink-time-opt"), "no code"));
  CHECK(contains(refusal("--options-file=a"), "options"));
  for (const char* option : {"--ftz=true", "-DX=1", "--ptxas-options=-v", "-Xptxas=-O2,-v",
                             "--no-cache", "--device-int128", "-w", "--split-compile=0"}) {
    CAPTURE(option);
    CHECK_NOTHROW(check_extra_option(option));
  }
}

TEST_CASE("extra options: one that NVRTC does not know is named, and the next compile works") {
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    auto request = request_for(kKernel);
    request.options.extra = {"--no-such-option=3"};
    const auto error = thrown_by<InvalidArgument>([&] { Compiler(nvrtc).compile(request); });
    CHECK(contains(error.what(), "no-such-option"));
    CHECK(contains(error.what(), nvrtc.version()));
    request.options.extra = {"--maxrregcount=many"};
    CHECK_THROWS_AS(Compiler(nvrtc).compile(request), Error);
    CHECK(Compiler(nvrtc).compile(request_for(kKernel)).kernels.size() == 1);
  }
}

TEST_CASE("extra options: nothing that is let through leaves a file behind") {
  const TemporaryFolder folder;
  const auto previous = fs::current_path();
  fs::current_path(folder.path());
  for (const LoadedNvrtc& nvrtc : nvrtcs_from(12, 9)) {
    for (const char* option : {"--ptxas-options=-v", "--no-cache", "--split-compile=2", "-w",
                               "--restrict", "--extra-device-vectorization"}) {
      auto request = request_for(kKernel);
      request.options.extra = {option};
      request.options.pch = Tristate::on;
      CHECK_NOTHROW(Compiler(nvrtc).compile(request));
    }
  }
  CHECK(files_here().empty());
  fs::current_path(previous);
}

TEST_CASE("extra options: include folders that are none are named") {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.h", "").string();
  auto request = request_for(kKernel);
  for (const std::string& bad : {file, folder.path().string() + "/none"}) {
    request.options.include_dirs = {folder.path().string(), bad};
    const auto error =
        thrown_by<InvalidArgument>([&] { Compiler(newest_nvrtc()).compile(request); });
    CHECK(contains(error.what(), bad));
    CHECK(contains(error.what(), bad == file ? "is no folder" : "does not exist"));
  }
  request.options.include_dirs.pop_back();
  CHECK_NOTHROW(Compiler(newest_nvrtc()).compile(request));
}

TEST_CASE("extra options: of two headers with one name the one in memory counts") {
  const TemporaryFolder folder;
  folder.write("a.h", "typedef double T;\n");
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    for (const char* include : {"#include <a.h>\n", "#include \"a.h\"\n"}) {
      auto request = request_for(include + std::string("__global__ void k(T x) {}\n"));
      request.options.include_dirs = {folder.path().string()};
      const auto type = [&] {
        return Compiler(nvrtc).compile(request).kernels.at(0).parameters.at(0).type;
      };
      CHECK(type() == "double");
      request.options.headers = {{"a.h", "typedef float T;\n"}};
      CHECK(type() == "float");
    }
  }
  ProgramOptions options;
  options.headers = {{"a.h", "x"}, {"./a.h", "y"}};
  const auto error = thrown_by<InvalidArgument>([&] { validate(options); });
  CHECK(contains(error.what(), "two spellings"));
}

TEST_CASE("extra options: a log of many megabytes is cut and says so") {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += "#warning \"a line of forty characters, more or less\"\n";
  const ObjectCode code = Compiler(newest_nvrtc()).compile(request_for(text + kKernel));
  CHECK(code.log.size() < (std::size_t{1} << 20) + 200);
  CHECK(contains(code.log, "cut here"));
  CHECK(code.kernels.size() == 1);
}

TEST_CASE("extra options: a source of 64 MiB compiles, one byte more is refused") {
  std::string text = kKernel;
  text.resize(kMaxSourceBytes, ' ');
  for (std::size_t i = kKernel.size(); i < text.size(); i += 100) text[i] = '\n';
  auto request = request_for(kKernel);
  request.source.text = text;
  CHECK(Compiler(newest_nvrtc()).compile(request).kernels.size() == 1);
  request.source.text += ' ';
  CHECK_THROWS_AS(Compiler(newest_nvrtc()).compile(request), InvalidArgument);
}
