// Modules: loading, look-ups, and messages for a driver's refusals.
#include "core/module.h"

#include "base/errors.h"
#include "core/device.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

using namespace kernwright;
using testing::contains;
using testing::FakeDriver;
using testing::fresh_device;
using testing::message_of;

namespace {

constexpr const char* kPtx = ".version 9.5\n.target sm_80\n.address_size 64\n";

std::string refusal(CUresult result, std::string_view image, const char* log = "") {
  Device& device = fresh_device();
  FakeDriver::get().load_log = log;
  FakeDriver::get().fail("cuModuleLoadDataEx", result);
  return message_of<DriverError>([&] { Module::load(device, image); });
}

}  // namespace

TEST_CASE("module: unloaded with the last copy, PTX handed over with its NUL") {
  Device& device = fresh_device();
  {
    const std::string_view text = std::string_view("kernel and more").substr(0, 6);
    const Module module = Module::load(device, text);
    CHECK(FakeDriver::get().image == "kernel");
    const Module copy = module;
    CHECK(copy.handle() == module.handle());
    CHECK(&copy.device() == &device);
    CHECK(FakeDriver::get().live("module") == 1);
  }
  CHECK(FakeDriver::get().live("module") == 0);
  CHECK(testing::fake_current_context() == nullptr);
}

TEST_CASE("module: functions and variables by name, and what is there when a name is not") {
  Device& device = fresh_device();
  FakeDriver::get().kernels = {{.name = "saxpy", .parameter_sizes = {}},
                               {.name = "_Z4fillPf", .parameter_sizes = {}}};
  FakeDriver::get().globals = {{"coeffs", 64}};
  const Module module = Module::load(device, kPtx);
  CHECK(module.function("saxpy") != nullptr);
  CHECK(module.function_names() == std::vector<std::string>{"_Z4fillPf", "saxpy"});
  const std::string text = message_of<NameNotFound>([&] { module.function("sapxy"); });
  CHECK(contains(text, "no kernel named 'sapxy'; it has _Z4fillPf, saxpy"));
  CHECK(module.symbol("coeffs").size == 64);
  CHECK(contains(message_of<NameNotFound>([&] { module.symbol("nothing"); }), "'nothing'"));

  FakeDriver::get().fail("cuModuleGetFunctionCount", CUDA_ERROR_NOT_SUPPORTED, 2);
  CHECK(module.function_names().empty());
  CHECK(message_of<NameNotFound>([&] { module.function("x"); }) ==
        "the module has no kernel named 'x'");
  FakeDriver::get().fail("cuModuleGetFunction", CUDA_ERROR_INVALID_HANDLE);
  CHECK_THROWS_AS(module.function("saxpy"), DriverError);
}

TEST_CASE("module: an empty image never reaches the driver") {
  Device& device = fresh_device();
  CHECK_THROWS_AS(Module::load(device, ""), InvalidArgument);
  CHECK(FakeDriver::get().calls("cuModuleLoadDataEx") == 0);
}

TEST_CASE("module: refused images name both versions, the fix, and the driver's log") {
  const std::string newer = refusal(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, kPtx);
  CHECK(contains(newer, "PTX 9.5 for sm_80"));
  CHECK(contains(newer, "CUDA 12.8"));
  CHECK(contains(newer, "PTX up to 8.7"));
  CHECK(contains(newer, "sm_90"));
  CHECK(contains(newer, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)"));

  const std::string wrong_arch = refusal(CUDA_ERROR_NO_BINARY_FOR_GPU, kPtx);
  CHECK(contains(wrong_arch, "for sm_80"));
  CHECK(contains(wrong_arch, "compute capability 9.0: compile for sm_90"));

  const std::string bad_ptx =
      refusal(CUDA_ERROR_INVALID_PTX, kPtx, "ptxas: line 7: syntax error\n");
  CHECK(contains(bad_ptx, "The driver's log:\nptxas: line 7: syntax error"));

  const std::string garbage = refusal(CUDA_ERROR_INVALID_IMAGE, "garbage");
  CHECK(contains(garbage, "neither a cubin nor PTX of 7 bytes"));
  CHECK(contains(refusal(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, kPtx), "libnvidia-ptxjitcompiler"));
  CHECK(contains(refusal(CUDA_ERROR_UNKNOWN, kPtx, "odd"), "log: odd"));
}

TEST_CASE("module: failing loads leave nothing behind and the device usable") {
  Device& device = fresh_device();
  FakeDriver::get().fail("cuModuleLoadDataEx", CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_THROWS_AS(Module::load(device, kPtx), OutOfMemory);
  CHECK(FakeDriver::get().live("module") == 0);
  CHECK(FakeDriver::get().calls("cuModuleUnload") == 0);
  CHECK(testing::fake_current_context() == nullptr);
  CHECK(Module::load(device, kPtx).handle() != nullptr);
}

TEST_CASE("module: the resource cubin goes to the simulated device only") {
  Device& gpu = fresh_device();
  int made = 0;
  const ResourceCubin make = [&] {
    if (++made == 1) throw Error("no compiler");
    return std::string("made later");
  };
  Module::load(gpu, kPtx, "cubin bytes");
  const Module of_gpu = Module::load(gpu, kPtx, {}, {}, make);
  CHECK_FALSE(of_gpu.makes_cubin());
  of_gpu.complete_resources();
  CHECK(made == 0);
  CHECK(FakeDriver::get().calls("kwSetModuleResources") == 0);

  FakeDriver::get().reset();
  static DeviceRegistry registry(
      {.cuda = nullptr,
       .cuda_reason = {},
       .sim = []() -> const DriverApi& { return FakeDriver::get().api(); },
       .wanted = "sim"});
  Device& simulated = registry.preferred();
  Module::load(simulated, kPtx, "cubin bytes");
  CHECK(FakeDriver::get().resource_image == "cubin bytes");
  CHECK(FakeDriver::get().calls("kwSetModuleResources") == 1);
  Module::load(simulated, kPtx);
  CHECK(FakeDriver::get().calls("kwSetModuleResources") == 1);
  CHECK_FALSE(Module::load(simulated, kPtx, "cubin bytes", {}, make).makes_cubin());
  CHECK(FakeDriver::get().calls("kwSetModuleResources") == 2);

  const Module later = Module::load(simulated, kPtx, {}, {}, make);
  CHECK(later.makes_cubin());
  CHECK(FakeDriver::get().calls("kwSetModuleResources") == 3);
  CHECK(made == 0);
  CHECK_THROWS_AS(later.complete_resources(), Error);
  CHECK(FakeDriver::get().calls("kwSetModuleResources") == 3);
  for (int i = 0; i < 2; ++i) later.complete_resources();
  CHECK(made == 2);
  CHECK(FakeDriver::get().resource_image == "made later");
  CHECK(FakeDriver::get().calls("kwSetModuleResources") == 4);

  Fault report;
  report.kind = FaultKind::unsupported;
  report.opcode = "wgmma.fence";
  report.ptx_line = 5;
  FakeDriver::get().report = report;
  FakeDriver::get().fail("cuModuleLoadDataEx", CUDA_ERROR_INVALID_PTX);
  CHECK_THROWS_AS(Module::load(simulated, kPtx), UnsupportedInstruction);

  report.file = "app.py";
  report.line = 4;
  FakeDriver::get().report = report;
  FakeDriver::get().fail("cuModuleLoadDataEx", CUDA_ERROR_INVALID_PTX);
  const std::string message = message_of<UnsupportedInstruction>([&] {
    Module::load(simulated, kPtx, {}, {"app.py", 41});
  });
  CHECK(contains(message, "app.py:44 (line 4 of the kernel's text"));
}
