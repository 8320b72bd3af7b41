// Random programs on the simulated device against their own interpreter.
#include "sim/random_program.h"
#include "unit/sim/device_fixture.h"

#include <chrono>
#include <cstdlib>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

/// What `grid` blocks of `block` threads write.
std::vector<std::uint32_t> run(CurrentDevice& device, const RandomProgram& program,
                               const std::vector<std::uint32_t>& input, unsigned grid,
                               unsigned block) {
  const std::size_t words = std::size_t{grid} * block * RandomProgram::kOutputs;
  const std::string text = program.ptx();
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  const CUresult loaded = device.api.cuModuleLoadData(&module, text.c_str());
  INFO(device.report().to_string());
  REQUIRE(loaded == CUDA_SUCCESS);
  REQUIRE(device.api.cuModuleGetFunction(&function, module, "random_program") == CUDA_SUCCESS);
  CUdeviceptr in = device.upload(input), out = device.upload(std::vector<std::uint32_t>(words));
  void* parameters[] = {&in, &out};
  REQUIRE(device.api.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, nullptr, parameters,
                                    nullptr) == CUDA_SUCCESS);
  std::vector<std::uint32_t> result(words);
  REQUIRE(device.api.cuMemcpyDtoH(result.data(), out, words * 4) == CUDA_SUCCESS);
  CHECK(device.api.cuMemFree(in) == CUDA_SUCCESS);
  CHECK(device.api.cuMemFree(out) == CUDA_SUCCESS);
  CHECK(device.api.cuModuleUnload(module) == CUDA_SUCCESS);
  return result;
}

}  // namespace

TEST_CASE("random programs: the simulated device agrees with an interpreter of one thread") {
  CurrentDevice device;
  const char* const wanted = std::getenv("KERNWRIGHT_FUZZ_SECONDS");
  const auto limit = std::chrono::seconds(wanted != nullptr ? std::atoi(wanted) : 4);
  const auto start = std::chrono::steady_clock::now();
  unsigned programs = 0;
  for (std::uint64_t seed = 1; seed <= 400 || wanted != nullptr; ++seed) {
    if (programs >= 40 && std::chrono::steady_clock::now() - start > limit) break;
    const RandomProgram program(seed);
    // Whole warps, and warps of which the last is not full.
    const unsigned block = seed % 2 == 0 ? 64 : 45, grid = 2;
    const auto input = RandomProgram::input(seed, grid * block);
    const auto expected = program.expected(input, grid * block);
    const auto got = run(device, program, input, grid, block);
    ++programs;
    if (got == expected) continue;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i] == expected[i]) continue;
      INFO("seed " << seed << ", thread " << i / 16 << ", register " << i % 16 << "\n"
                   << program.ptx());
      CHECK(got[i] == expected[i]);
      break;
    }
  }
  CHECK(programs >= 40);
}

TEST_CASE("random programs: a seed gives one program and one input") {
  CHECK(RandomProgram(7).ptx() == RandomProgram(7).ptx());
  CHECK(RandomProgram(7).ptx() != RandomProgram(8).ptx());
  CHECK(RandomProgram::input(7, 3) == RandomProgram::input(7, 3));
}
