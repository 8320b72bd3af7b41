// Checking of options and their NVRTC spelling.
#include "jit/source/program_options.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/errors.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

std::string refusal(const ProgramOptions& options) {
  return thrown_by<InvalidArgument>([&] { validate(options); }).what();
}

ProgramOptions with_extra(std::string option) {
  ProgramOptions options;
  options.extra = {std::move(option)};
  return options;
}

}  // namespace

TEST_CASE("options: the defaults are good") { CHECK_NOTHROW(validate(ProgramOptions{})); }

TEST_CASE("options: each field becomes an option, in a fixed order") {
  ProgramOptions options;
  options.defines = {{"N", "4"}, {"FLAG", ""}};
  options.include_dirs = {"/a", "b c"};
  options.fast_math = true;
  options.max_registers = 64;
  options.lineinfo = true;
  options.opt_level = 2;
  options.pch = Tristate::on;
  options.minimal = Tristate::on;
  options.extra = {"--no-cache"};
  CHECK_NOTHROW(validate(options));
  CHECK(to_nvrtc_options(options, "sm_90", {"/cuda"}) ==
        std::vector<std::string>{"--gpu-architecture=sm_90", "--std=c++17", "--define-macro=FLAG",
                                 "--define-macro=N=4", "--include-path=/a", "--include-path=b c",
                                 "--include-path=/cuda", "--use_fast_math", "--maxrregcount=64",
                                 "--generate-line-info", "--minimal", "--ptxas-options=-O2",
                                 "--no-cache"});
  options.device_debug = true;
  const auto debug = to_nvrtc_options(options, "sm_90", {});
  CHECK(std::count(debug.begin(), debug.end(), "--device-debug") == 1);
  CHECK(std::count(debug.begin(), debug.end(), "--generate-line-info") == 0);
}

TEST_CASE("options: NULs and line breaks are refused with their offset") {
  CHECK(contains(refusal(with_extra(std::string("-a\0b", 4))), "NUL at offset 2"));
  CHECK(contains(refusal(with_extra("-DX=1\n-DY")), "line break at offset 5"));
  ProgramOptions options;
  options.defines = {{"X", std::string("1\0", 2)}};
  CHECK(contains(refusal(options), "offset 1"));
  options = {};
  options.include_dirs = {"a\nb"};
  CHECK(contains(refusal(options), "line break"));
  options = {};
  options.headers = {{"a.h", std::string("xy\0z", 4)}};
  CHECK(contains(refusal(options), "NUL at offset 2"));
  options.headers = {{"a.h", "two\nlines\n"}};
  CHECK_NOTHROW(validate(options));
}

TEST_CASE("options: free ones start with '-' and leave fields alone") {
  for (const char* bad :
       {"", "-", "O3", " -x", "-arch=sm_90", "--gpu-architecture", "-std=c++20"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(validate(with_extra(bad)), InvalidArgument);
  }
  CHECK_NOTHROW(validate(with_extra("--ftz=true")));
}

TEST_CASE("options: header names stay inside the table") {
  for (const char* bad :
       {"", "/etc/passwd", "../a.h", "a/../b.h", "a/..", "\\a.h", "c:/a.h", "a\nb"}) {
    CAPTURE(bad);
    ProgramOptions options;
    options.headers = {{bad, "x"}};
    CHECK_THROWS_AS(validate(options), InvalidArgument);
  }
  ProgramOptions options;
  options.headers = {{"a/b..h", "x"}, {"...", "y"}};
  CHECK_NOTHROW(validate(options));
}

TEST_CASE("options: defines are macro names") {
  for (const char* bad : {"", "1X", "A B", "A=1", "A-B", "F(a"}) {
    CAPTURE(bad);
    ProgramOptions options;
    options.defines = {{bad, "1"}};
    CHECK_THROWS_AS(validate(options), InvalidArgument);
  }
  ProgramOptions options;
  options.defines = {{"F(a, b)", "a + b"}, {"_x9", ""}};
  CHECK_NOTHROW(validate(options));
}

TEST_CASE("options: numbers and standards have ranges") {
  ProgramOptions options;
  options.std = "c++03";
  CHECK(contains(refusal(options), "c++20"));
  options.std = "c++23";
  CHECK_NOTHROW(validate(options));
  for (const int bad : {-1, 0, 256}) {
    options = {};
    options.max_registers = bad;
    CHECK(contains(refusal(options), "1 ... 255"));
  }
  for (const int bad : {-1, 4}) {
    options = {};
    options.opt_level = bad;
    CHECK(contains(refusal(options), "0 ... 3"));
  }
  options = {};
  options.device_debug = true;
  options.opt_level = 3;
  CHECK(contains(refusal(options), "device_debug"));
  options = {};
  options.timeout = std::chrono::milliseconds(0);
  CHECK(contains(refusal(options), "timeout"));
}

TEST_CASE("options: counts have limits") {
  ProgramOptions options;
  options.extra.assign(1000, "-x");
  CHECK_NOTHROW(validate(options));
  options.extra.push_back("-x");
  CHECK(contains(refusal(options), "1001"));
  options = {};
  for (int i = 0; i < 4001; ++i) options.headers["h" + std::to_string(i)] = "";
  CHECK(contains(refusal(options), "4001"));
  options.headers.erase("h0");
  CHECK_NOTHROW(validate(options));
}

TEST_CASE("options: NVRTC takes every one of them") {
  ProgramOptions options;
  options.defines = {{"N", "4"}, {"F(a)", "((a) + 1)"}, {"BARE", ""}};
  options.fast_math = true;
  options.max_registers = 32;
  options.lineinfo = true;
  options.opt_level = 1;
  options.minimal = Tristate::on;
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    auto request = request_for("__global__ void k(int* x) { x[0] = F(N) + BARE; }");
    request.options = options;
    CHECK(Compiler(nvrtc).compile(request).kernels.size() == 1);
    request.options.opt_level.reset();
    request.options.device_debug = true;
    CHECK(Compiler(nvrtc).compile(request).kernels.size() == 1);
  }
}
