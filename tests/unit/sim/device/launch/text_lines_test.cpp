// Lines of the source below messages of faults, by the function that knows the texts.
#include "sim/check/report/findings.h"
#include "sim/device.h"

#include "unit/sim/device/device_fixture.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

constexpr char kTrapInLineSeven[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
  .loc 1 7 3
  trap;
  ret;
}
.file 1 "text.cu"
)";

std::uint64_t code_of_the_trap = 0;

std::string line_of_text_cu(std::uint64_t code, const std::string& file, int line) {
  code_of_the_trap = code;
  return file == "text.cu" && line == 7 ? "__trap();" : std::string();
}

std::string no_line(std::uint64_t, const std::string&, int) { return {}; }

/// The message of a launch that traps in line 7 of text.cu.
std::string message_of_a_trap() {
  const CurrentDevice device;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(device.api.cuModuleLoadData(&module, kTrapInLineSeven) == CUDA_SUCCESS);
  REQUIRE(device.api.cuModuleGetFunction(&function, module, "k") == CUDA_SUCCESS);
  CHECK(device.api.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) !=
        CUDA_SUCCESS);
  return device.report().message;
}

}  // namespace

TEST_CASE("text lines: a fault shows the line, and none where it is not known") {
  const std::string bare = message_of_a_trap();
  CHECK(bare.find('\n') == std::string::npos);
  set_text_lines(&line_of_text_cu);
  CHECK(message_of_a_trap() == bare + "\n    __trap();");
  CHECK(code_of_the_trap == code_id(kTrapInLineSeven));
  set_text_lines(&no_line);
  CHECK(message_of_a_trap() == bare);
  set_text_lines(nullptr);
  CHECK(message_of_a_trap() == bare);
}
