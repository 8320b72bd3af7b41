// Phase times and spills, read from the tools' output and from a real compile.
#include "jit/compile/compile_profile.h"

#include <doctest/doctest.h>

#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

TEST_CASE("compile profile: rows of one phase are added up") {
  const auto phases = read_phase_times(
      "File name, phase name, metric, unit\n"
      "/dev/null/k.cu, CUDA C++ Frontend, 24, ms\n"
      "a, b.cu, NVVM Optimizer, 1.5, ms\n"
      "/dev/null/k.cu, CUDA C++ Frontend, 6, ms\n"
      "broken\n, , ,\nx, y, 3, s");
  REQUIRE(phases.size() == 2);
  CHECK(phases[0].name == "CUDA C++ Frontend");
  CHECK(phases[0].ms == 30);
  CHECK(phases[1].name == "NVVM Optimizer");
  CHECK(phases[1].ms == 1.5);
  CHECK(read_phase_times("").empty());
}

TEST_CASE("compile profile: the spills of the kernel that is asked for") {
  const std::string log =
      "ptxas info    : Function properties for _Z1av\n"
      "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Function properties for _Z1abv\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
  const KernelSpills spills = read_spills(log, "_Z1av");
  CHECK(spills.stack_bytes == 16);
  CHECK(spills.store_bytes == 8);
  CHECK(spills.load_bytes == 12);
  CHECK(read_spills(log, "_Z1abv").stack_bytes == 0);
  CHECK(read_spills(log, "_Z1c").store_bytes == 0);
  CHECK(read_spills("", "k").store_bytes == 0);
}

TEST_CASE("compile profile: a measured compile tells phase times and spills") {
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    auto request = request_for(
        "__global__ void k(float* x) {\n  float v[64];\n"
        "  for (int i = 0; i < 64; ++i) v[i] = x[i] * x[i + 64];\n"
        "  for (int j = 0; j < 9; ++j)\n    for (int i = 0; i < 64; ++i) v[i] += x[j] * v[63 - "
        "i];\n"
        "  for (int i = 0; i < 64; ++i) x[i] = v[i];\n}\n",
        {"k"}, CodeKind::cubin);
    request.options.max_registers = 24;
    const CompileResult result = run_compile(nvrtc, {request, false, true}, {});
    const ObjectCode& code = result.code;
    CHECK(read_spills(code.log, code.kernel("k").lowered).store_bytes > 0);
    CHECK(!read_phase_times(result.phase_times).empty());
  }
}
