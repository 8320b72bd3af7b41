// Single launches on a small simulated device: whose fault it is that memory is used up.
#include "tune/judge/judged_kernel.h"

#include <doctest/doctest.h>

#include "base/errors.h"
#include "driver/nvrtc_loader.h"
#include "jit/program.h"
#include "unit/site_packages.h"

using namespace kernwright;

namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

RemoteDevice& small_device() {
  static RemoteDevice& made = *[] {
    RemoteDeviceOptions options;
    options.worker.command = {TEST_TUNE_WORKER};
    options.worker.environment = {"KERNWRIGHT_DEVICE=sim", "KERNWRIGHT_SIM_MEMORY=16M"};
    return new RemoteDevice(options);
  }();
  return made;
}

/// Writes 1 to the first byte; has so many MiB of variables.
std::unique_ptr<JudgedKernel> first_byte(std::size_t variables) {
  set_site_packages({testing::site_packages()});
  const std::string text = "__device__ char hoard[" + std::to_string(variables * kMebibyte + 1) +
                           "];\nextern \"C\" __global__ void first(char* y) { *y = 1 + hoard[0]; }";
  ProgramOptions options;
  options.arch = "compute_80";
  const ObjectCode code = Program({text, "first.cu", 1, {}}, options).compile(CodeKind::ptx);
  return std::make_unique<JudgedKernel>(small_device(), code, code.kernel("first"));
}

HostCase case_of(std::size_t mebibytes) {
  HostCase made;
  made.inputs = {
      HostValue::from(ScalarType::uint8, std::vector<std::uint8_t>(mebibytes * kMebibyte))};
  made.expected = {made.inputs[0]};
  made.shape.grid = Dim3{1, 1, 1};
  made.shape.block = Dim3{1, 1, 1};
  return made;
}

LaunchOutcome launched(JudgedKernel& kernel, std::size_t mebibytes) {
  return kernel.run(case_of(mebibytes), {Contents::given}, {.seed = 3}, std::nullopt, {});
}

}  // namespace

TEST_CASE("judged kernel: variables that do not fit are the kernel's fault") {
  CHECK_THROWS_AS(launched(*first_byte(64), 1), LaunchConfigError);
  CHECK_THROWS_AS_MESSAGE(launched(*first_byte(15), 4), LaunchConfigError, "beside its arguments");
  const auto kernel = first_byte(10);
  CHECK(launched(*kernel, 1).after[0].bytes[0] == std::byte{1});
  CHECK_THROWS_AS_MESSAGE(launched(*kernel, 10), LaunchConfigError, "loaded before");
  CHECK(launched(*kernel, 1).after[0].bytes[0] == std::byte{1});
}

TEST_CASE("judged kernel: arguments that do not fit are the task's, and leave nothing behind") {
  const auto kernel = first_byte(0);
  HostCase two = case_of(9);
  two.inputs.push_back(two.inputs[0]);
  two.expected.push_back(two.inputs[0]);
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_AS(
        kernel->run(two, {Contents::given, Contents::given}, {.seed = 3}, std::nullopt, {}),
        OutOfMemory);
  }
  CHECK(launched(*kernel, 9).after[0].bytes[0] == std::byte{1});
}
