// Reading of compiler logs.
#include "jit/compile/diagnostics.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

constexpr std::string_view kLog = R"(k.cu(2): error: identifier "y" is undefined
  	x[0] = y;
  	       ^

my (odd): file.py(13): warning #177-D: variable "u" was declared but never referenced
  __global__ void k(char*x){ int u; }
                                 ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

__nv_name_map(3): error: no instance of function template "of" matches the argument list
            argument types are: (<error-type>)
  #pragma nv_mangled_name scale<float, 4>
                          ^

k.cu(1): catastrophic error: cannot open source file "vector"
  #include <vector>
                   ^

ptxas error   : Entry function '_Z1kPi' uses too much shared data (0xf4240 bytes, 0xc000 max)
ptxas application ptx input, line 23; error   : Unknown modifier '.instr'
ptxas fatal   : Ptx assembly aborted due to errors
nvrtc: error: invalid value for --gpu-architecture (-arch)
2 errors detected in the compilation of "k.cu".
)";

std::vector<Diagnostic> diagnostics_of(std::string_view log) {
  std::vector<Diagnostic> result;
  for (const LogMessage& message : parse_compile_log(log)) result.push_back(message.diagnostic);
  return result;
}

std::string hint_of(const std::string& message, std::vector<std::string> folders = {}) {
  std::vector<Diagnostic> one(1);
  one[0].message = message;
  add_hints(one, folders);
  return one[0].hint;
}

}  // namespace

TEST_CASE("diagnostics: places, severities, carets") {
  const auto messages = parse_compile_log(kLog);
  REQUIRE(messages.size() == 7);  // without the assembler's last word
  const Diagnostic& first = messages[0].diagnostic;
  CHECK(first.severity == Severity::error);
  CHECK(first.file == "k.cu");
  CHECK(first.line == 2);
  CHECK(first.column == 9);
  CHECK(first.message == "identifier \"y\" is undefined");
  CHECK(first.caret == "\tx[0] = y;\n\t       ^");
  const Diagnostic& second = messages[1].diagnostic;
  CHECK(second.severity == Severity::warning);
  CHECK(second.file == "my (odd): file.py");
  CHECK(second.line == 13);
  CHECK(second.message == "variable \"u\" was declared but never referenced");
  CHECK(messages[2].name_expression == "scale<float, 4>");
  CHECK(contains(messages[2].diagnostic.message, "argument types are: (<error-type>)"));
  CHECK(messages[3].diagnostic.severity == Severity::error);
  CHECK(contains(messages[4].diagnostic.message, "uses too much shared data"));
  CHECK(contains(messages[5].diagnostic.message, "Unknown modifier"));
  CHECK(messages[5].ptx_line == 23);
  CHECK(contains(messages[6].diagnostic.message, "invalid value"));
}

TEST_CASE("diagnostics: context lines join the message") {
  const auto all = diagnostics_of(
      "k.cu(1): error: expression must have class type but it has type \"float\"\n"
      "  template<class T> void k(T*x){ x[0].foo(); }\n"
      "                                 ^\n"
      "          detected during instantiation of \"void k(T *) [with T=float]\" \n\n");
  REQUIRE(all.size() == 1);
  CHECK(all[0].column == 32);
  CHECK(contains(all[0].message, "detected during instantiation"));
}

TEST_CASE("diagnostics: a source line that is indented far is still a source line") {
  const auto messages = parse_compile_log(
      "k.cu(4): error: expected a \";\"\n"
      "              }\n"
      "              ^\n\n"
      "1 error detected in the compilation of \"k.cu\".\n");
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].diagnostic.message == "expected a \";\"");
  CHECK(messages[0].diagnostic.column == 13);
  CHECK(messages[0].diagnostic.caret == "            }\n            ^");
}

TEST_CASE("diagnostics: lines move with the text inside its file") {
  auto all = diagnostics_of(kLog);
  shift_lines(all, "k.cu", 100);
  CHECK(all[0].line == 101);
  CHECK(all[1].line == 13);
  CHECK(all[4].line == 0);
}

TEST_CASE("diagnostics: the summary shows the cause first, then the count") {
  auto all = diagnostics_of(kLog);
  add_hints(all);
  const std::string text = summarize(all, "k.cu", kLog);
  CHECK(contains(text, "k.cu:2:9: error: identifier \"y\" is undefined"));
  CHECK(contains(text, "(6 errors;"));
  CHECK(contains(text, "Unknown modifier"));
  const auto unknown_type = diagnostics_of(
      "k.cu(1): error: attribute \"__global__\" does not apply here\n\n"
      "k.cu(1): error: identifier \"uint32_t\" is undefined\n\n");
  CHECK(contains(summarize(unknown_type, "k.cu", ""), "uint32_t"));
  CHECK(contains(summarize({}, "k.cu", "the raw log"), "the raw log"));
}

TEST_CASE("diagnostics: hints for the usual causes") {
  const struct {
    const char* message;
    const char* hint;
  } rows[] = {
      {"cannot open source file \"cuda_fp16.h\"", "nvidia-cuda-nvrtc"},
      {"could not open source file \"cub/cub.cuh\" (no directories in search list)", "nvidia-cuda"},
      {"cannot open source file \"vector\"", "strip_host=True"},
      {"cannot open source file \"unistd.h\"", "strip_host=True"},
      {"cannot open source file \"cublas_v2.h\"", "kernels cannot call it"},
      {"cannot open source file \"curand.h\"", "kernels cannot call it"},
      {"cannot open source file \"cuda_helpers.h\"", "headers={"},
      {"cannot open source file \"sm_utils.h\"", "headers={"},
      {"cannot open source file \"texture_tools.h\"", "headers={"},
      {"cannot open source file \"crt/none.h\"", "remove the include"},
      {"cannot open source file \"my/own.h\"", "headers={"},
      {"cannot open source file \"curand_kernel.h\"", "nvidia-curand"},
      {"identifier \"uint32_t\" is undefined", "<cstdint>"},
      {"identifier \"__half\" is undefined", "cuda_fp16.h"},
      {"identifier \"__nv_bfloat16\" is undefined", "cuda_bf16.h"},
      {"identifier \"__nv_fp8_e4m3\" is undefined", "cuda_fp8.h"},
      {"name followed by \"::\" must be a class or namespace name", ""},
      {"namespace \"std\" has no member \"min\"", "cuda::std"},
      {"identifier \"FLT_MAX\" is undefined", "<cfloat>"},
      {"identifier \"M_PI\" is undefined", "3.14159"},
      {"identifier \"M_tile\" is undefined", ""},
      {"identifier \"FLT_SIZE\" is undefined", ""},
      {"identifier \"cudaMalloc\" is undefined", "cannot call the CUDA runtime"},
      {"identifier \"cuMemcpyAsync\" is undefined", "cannot call the CUDA runtime"},
      {"identifier \"cudaFoo_t\" is undefined", "cannot call the CUDA runtime"},
      {"identifier \"cuda_value\" is undefined", ""},
      {"identifier \"cumulated\" is undefined", ""},
      {"device-side kernel launch could not be processed as the required runtime APIs are not "
       "declared",
       "cannot launch kernels"},
      {"Formal parameter space overflowed (33008 bytes required, max 32764 bytes allowed) in "
       "function _Z1f",
       "pass a pointer"},
      {"ptxas: Instruction 'wgmma.fence' not supported on .target 'sm_80'", "sm_90a"},
      {"ptxas: Feature 'cp.async.bulk' requires .target sm_90 or higher",
       "KERNWRIGHT_SIM_CAPABILITY=9.0"},
      {"identifier \"my_variable\" is undefined", ""},
      {"expected a \";\"", ""},
  };
  for (const auto& row : rows) {
    CAPTURE(row.message);
    if (*row.hint == '\0') {
      CHECK(hint_of(row.message) == "");
    } else {
      CHECK(contains(hint_of(row.message), row.hint));
    }
  }
}

TEST_CASE("diagnostics: columns count characters, and the caret stands below its own") {
  const auto all = diagnostics_of(
      "k.cu(1): error: identifier \"yy\" is undefined\n"
      "  /* gr\xc3\xb6\xc3\x9f\xe2\x88\x82 */\to = yy;\n"
      "                 \t    ^\n\n");
  REQUIRE(all.size() == 1);
  CHECK(all[0].column == 17);
  CHECK(all[0].caret == "/* gr\xc3\xb6\xc3\x9f\xe2\x88\x82 */\to = yy;\n           \t    ^");
}

TEST_CASE("diagnostics: what is missing at the end of the source stands on its last line") {
  auto messages = parse_compile_log(
      "At end of source: error: expected a \"}\"\n"
      "k.cu(2): note #3196-D: to match this \"{\"\n\n");
  REQUIRE(messages.size() == 2);
  place_at_end(messages, "k.cu", "int a;\n{\nint b;\n\n");
  CHECK(messages[0].diagnostic.to_string() == "k.cu:3: error: expected a \"}\"");
  CHECK(messages[1].diagnostic.line == 2);
}

TEST_CASE("diagnostics: lines within messages and logs move with the text") {
  const std::string log =
      "k.cu(2): error: class \"A\" has already been defined (previous definition at line 1)\n"
      "  int at line 9;\n"
      "      ^\n"
      "          detected during instantiation at line 7\n\n"
      "h.h(4): error: seen at line 3 of \"k.cu\", then at line 5 of \"h.h\" and at line 6\n\n";
  auto all = diagnostics_of(log);
  shift_lines(all, "k.cu", 11);
  CHECK(all[0].line == 12);
  CHECK(contains(all[0].message, "definition at line 11)"));
  CHECK(contains(all[0].message, "instantiation at line 17"));
  CHECK(all[1].line == 4);
  CHECK(
      contains(all[1].message, "at line 13 of \"k.cu\", then at line 5 of \"h.h\" and at line 6"));
  const std::string moved = shifted_log(log, "k.cu", 11);
  CHECK(contains(moved, "k.cu(12): error"));
  CHECK(contains(moved, "int at line 9;"));
  CHECK(contains(moved, "instantiation at line 17"));
  CHECK(contains(moved, "h.h(4): error: seen at line 13 of \"k.cu\""));
  CHECK(shifted_log(moved, "k.cu", -9) == log);
  CHECK(shifted_log("", "k.cu", 5) == "");
}

TEST_CASE("diagnostics: the first ten errors are shown, then their number") {
  std::string log;
  for (int i = 1; i <= 23; ++i) log += "k.cu(" + std::to_string(i) + "): error: no\n\n";
  const std::string text = summarize(diagnostics_of(log), "k.cu", log);
  CHECK(contains(text, "k.cu:10: error"));
  CHECK(!contains(text, "k.cu:11: error"));
  CHECK(contains(text, "(23 errors, of which 10 are shown;"));
}

TEST_CASE("diagnostics: no hint asks to install what does not help") {
  const auto missing = [](const std::string& name, std::vector<std::string> folders = {}) {
    return hint_of("cannot open source file \"" + name + "\"", std::move(folders));
  };
  for (const char* name : {"compare", "cuda/std/compare"}) {
    CHECK(contains(missing(name), "comparison operators"));
    CHECK(!contains(missing(name), "install"));
  }
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "cuda/std");
  std::ofstream(folder.path() / "cuda_fp16.h");
  const std::vector<std::string> folders{"/nowhere", folder.path().string()};
  for (const char* name : {"cuda/std/none", "cuda_fp99.h"}) {
    CHECK(contains(missing(name), "pip install"));
    CHECK(contains(missing(name, folders), folder.path().string() + " have no such file"));
    CHECK(!contains(missing(name, folders), "pip install"));
  }
  CHECK(contains(missing("cub/none.cuh", folders), "nvidia-cuda-cccl"));
  CHECK(contains(hint_of("__int128 needs --device-int128"), "extra=[\"--device-int128\"]"));
}

TEST_CASE("diagnostics: damaged logs are read without harm") {
  std::mt19937 random(3);
  for (std::size_t i = 0; i <= kLog.size(); ++i)
    CHECK_NOTHROW(parse_compile_log(kLog.substr(0, i)));
  for (int round = 0; round < 2000; ++round) {
    std::string changed(kLog);
    for (int i = 0; i < 20; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    auto all = diagnostics_of(changed);
    add_hints(all);
    CHECK_NOTHROW(summarize(all, "k.cu", changed));
  }
  CHECK(parse_compile_log("k.cu(99999999999999): error: x").empty());
  CHECK(parse_compile_log("").empty());
}
