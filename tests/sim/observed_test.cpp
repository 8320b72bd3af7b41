// Launches that are watched compute what others do, and are counted the same however they run.
#include "sim/checks.h"
#include "sim/device.h"
#include "sim/line_profile.h"
#include "sim/random_program.h"
#include "sim/references.h"
#include "unit/sim/device_fixture.h"

using namespace kernwright;
using namespace kernwright::sim;

namespace {

std::vector<std::uint32_t> run(CurrentDevice& device, const std::string& text,
                               const std::vector<std::uint32_t>& input, unsigned block) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(device.api.cuModuleLoadData(&module, text.c_str()) == CUDA_SUCCESS);
  REQUIRE(device.api.cuModuleGetFunction(&function, module, "random_program") == CUDA_SUCCESS);
  const std::size_t words = std::size_t{block} * RandomProgram::kOutputs;
  CUdeviceptr in = device.upload(input), out = device.upload(std::vector<std::uint32_t>(words));
  void* parameters[] = {&in, &out};
  REQUIRE(device.api.cuLaunchKernel(function, 1, 1, 1, block, 1, 1, 0, nullptr, parameters,
                                    nullptr) == CUDA_SUCCESS);
  const auto result = device.download<std::uint32_t>(out, words);
  CHECK(device.api.cuMemFree(in) == CUDA_SUCCESS);
  CHECK(device.api.cuMemFree(out) == CUDA_SUCCESS);
  CHECK(device.api.cuModuleUnload(module) == CUDA_SUCCESS);
  return result;
}

}  // namespace

TEST_CASE("observed: every case of the corpus gives what its reference computes") {
  CurrentDevice device;
  int runs = 0;
  for (const KernelCase& kernel_case : load_cases()) {
    if (kernel_case.reference.empty()) continue;
    const Buffers expected = expected_results(kernel_case);
    for (const std::string& file : ptx_files(kernel_case.source, ".80.ptx")) {
      INFO("case ", kernel_case.name, ", ", file);
      const LineProfileScope scope;
      Buffers got;
      REQUIRE_NOTHROW(got = run_case(device.api, kernel_case, read_ptx(file)));
      for (std::size_t i = 0; i < got.size(); ++i) {
        const CaseArgument& argument = kernel_case.arguments[i];
        if (argument.count == 0 || argument.order_dependent) continue;
        CHECK(difference(argument.type, got[i], expected[i], argument.comparison) == "");
      }
      const LineProfile profile = scope.profile();
      const LineCounts total = profile.total();
      CHECK(profile.launches.size() == 1);
      CHECK(total.instructions > 0);
      CHECK(total.thread_instructions + total.predicated_off <= 32 * total.instructions);
      CHECK(total.divergent_branches <= total.branches);
      CHECK(total.branches <= total.instructions);
      CHECK(total.global_ideal_sectors <= total.global_sectors);
      CHECK(total.global_lines <= total.global_sectors);
      CHECK(total.shared_ideal_wavefronts <= total.shared_wavefronts);
      CHECK(total.atomics <= total.atomic_passes);
      CHECK(total.atomic_passes <= total.atomic_threads);
      ++runs;
    }
  }
  CHECK(runs >= 2 * 25);
}

TEST_CASE("observed: random programs, counted alike with and without checks") {
  CurrentDevice device;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed ", seed);
    const RandomProgram program(seed);
    const unsigned block = seed % 2 == 0 ? 64 : 45;
    const auto input = RandomProgram::input(seed, block);
    const auto expected = program.expected(input, block);
    LineCounts plain;
    {
      const LineProfileScope scope;
      CHECK(run(device, program.ptx(), input, block) == expected);
      plain = scope.profile().total();
    }
    const LineProfileScope scope;
    const CheckScope checks({true, true, true});
    CHECK(run(device, program.ptx(), input, block) == expected);
    CHECK(scope.profile().total() == plain);
  }
}
