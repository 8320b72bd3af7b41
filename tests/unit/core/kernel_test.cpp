// Kernels: attributes read once, checks before the driver's calls, and the arguments of a launch.
#include "core/kernel.h"

#include "base/errors.h"
#include "core/device.h"
#include "core/launch/launch_hook.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <cstring>
#include <thread>

using namespace kernwright;
using testing::contains;
using testing::FakeDriver;
using testing::FakeKernel;
using testing::fresh_device;
using testing::message_of;

namespace {

KernelSignature saxpy_signature() {
  KernelSignature signature{.name = "saxpy", .lowered = "saxpy", .parameters = {}};
  signature.parameters = {
      {.name = "a", .type = "float", .scalar = ScalarType::float32},
      {.name = "x", .type = "const float*", .kind = ParameterKind::pointer},
      {.name = "n", .type = "int", .scalar = ScalarType::int32},
  };
  return signature;
}

Kernel saxpy(Device& device, FakeKernel kernel = {.name = "saxpy", .parameter_sizes = {4, 8, 4}}) {
  FakeDriver::get().kernels = {std::move(kernel)};
  return Kernel(Module::load(device, ".version 8.0"), saxpy_signature());
}

struct Arguments {
  float a = 2.5F;
  std::uint64_t x = 0x1234;
  int n = 77;
  std::array<void*, 3> pointers{&a, &x, &n};
};

}  // namespace

TEST_CASE("kernel: attributes are read once, and the module lives as long as the kernel") {
  Device& device = fresh_device();
  {
    const Kernel kernel = saxpy(device, {.name = "saxpy",
                                         .parameter_sizes = {4, 8, 4},
                                         .registers = 40,
                                         .shared_bytes = 128,
                                         .max_threads = 640});
    CHECK(kernel.attributes().registers == 40);
    CHECK(kernel.attributes().shared_bytes == 128);
    CHECK(kernel.attributes().max_threads_per_block == 640);
    CHECK(kernel.attributes().binary_version == 90);
    CHECK(&kernel.device() == &device);
    const int before = FakeDriver::get().calls("cuFuncGetAttribute");
    const Kernel copy = kernel;
    CHECK(copy.attributes().registers == 40);
    CHECK(copy.handle() == kernel.handle());
    CHECK(FakeDriver::get().calls("cuFuncGetAttribute") == before);
    CHECK(FakeDriver::get().live("module") == 1);
  }
  CHECK(FakeDriver::get().live("module") == 0);
}

TEST_CASE("kernel: sizes and offsets come from the driver, or from the ABI where it is silent") {
  for (const bool tells : {true, false}) {
    Device& device = fresh_device();
    FakeDriver::get().tells_parameters = tells;
    const Kernel kernel = saxpy(device);
    const auto& parameters = kernel.signature().parameters;
    REQUIRE(parameters.size() == 3);
    CHECK(parameters[0].offset == 0);
    CHECK(parameters[1].offset == 8);
    CHECK(parameters[1].size == 8);
    CHECK(parameters[2].offset == 16);
    CHECK(parameters[2].size == 4);
  }
}

TEST_CASE("kernel: the driver's count of parameters must be the signature's") {
  Device& device = fresh_device();
  const std::string fewer = message_of<InvalidArgument>([&] {
    saxpy(device, {.name = "saxpy", .parameter_sizes = {4, 8}});
  });
  CHECK(contains(fewer, "saxpy(float a, const float* x, int n) has 3 parameters"));
  CHECK(contains(fewer, "the object code 2"));
  CHECK_THROWS_AS(saxpy(device, {.name = "saxpy", .parameter_sizes = {4, 8, 4, 4}}),
                  InvalidArgument);
  CHECK_THROWS_AS(saxpy(device, {.name = "other", .parameter_sizes = {}}), NameNotFound);
  CHECK(FakeDriver::get().live("module") == 0);
}

TEST_CASE("launch: hands over grid, block, stream and the bytes of each argument") {
  Device& device = fresh_device();
  const Kernel kernel = saxpy(device);
  const Stream stream = Stream::create(device);
  Arguments arguments;
  kernel.launch({.grid = {3, 2, 1}, .block = {64, 2, 2}, .shared_bytes = 512, .stream = stream},
                arguments.pointers);
  REQUIRE(FakeDriver::get().launches.size() == 1);
  const auto& launch = FakeDriver::get().launches[0];
  CHECK(launch.kernel == "saxpy");
  CHECK(launch.grid == std::array{3U, 2U, 1U});
  CHECK(launch.block == std::array{64U, 2U, 2U});
  CHECK(launch.shared_bytes == 512);
  CHECK(launch.stream == stream.handle());
  CHECK(launch.attributes.empty());
  float a = 0;
  std::memcpy(&a, launch.arguments[0].data(), 4);
  CHECK(a == 2.5F);
  CHECK(testing::fake_current_context() == nullptr);
  kernel.launch({}, arguments.pointers);
  CHECK(FakeDriver::get().launches[1].stream == nullptr);
}

TEST_CASE("launch: attributes are sent only when asked for") {
  Device& device = fresh_device();
  const Kernel kernel = saxpy(device);
  Arguments arguments;
  kernel.launch({.grid = {4, 1, 1},
                 .cluster = {2, 1, 1},
                 .cooperative = true,
                 .priority = -2,
                 .programmatic_dependent = true},
                arguments.pointers);
  const auto& sent = FakeDriver::get().launches.at(0).attributes;
  REQUIRE(sent.size() == 4);
  CHECK(sent[0].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  CHECK(sent[0].value.clusterDim.x == 2);
  CHECK(sent[1].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  CHECK(sent[1].value.cooperative == 1);
  CHECK(sent[2].id == CU_LAUNCH_ATTRIBUTE_PRIORITY);
  CHECK(sent[2].value.priority == -2);
  CHECK(sent[3].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
}

TEST_CASE("launch: what breaks a limit never reaches the driver") {
  auto& registry = testing::fake_registry();
  Device& device = registry.by_index(0);
  const Kernel kernel = saxpy(device);
  Arguments arguments;
  const std::string text = message_of<LaunchConfigError>([&] {
    kernel.launch({.block = {2048, 1, 1}}, arguments.pointers);
  });
  CHECK(text ==
        "block of 2048 threads (2048 x 1 x 1): at most 1024 threads for kernel saxpy on cuda:0");
  CHECK_THROWS_AS(kernel.launch({.grid = {0, 1, 1}}, arguments.pointers), LaunchConfigError);
  CHECK_THROWS_AS(kernel.check({.block = {1, 1, 0}}), LaunchConfigError);
  kernel.check({});
  const std::string resident = message_of<LaunchConfigError>([&] {
    kernel.launch({.grid = {9, 1, 1}, .block = {1024, 1, 1}, .cooperative = true},
                  arguments.pointers);
  });
  CHECK(contains(resident, "at most 8 blocks (2 on each of 4 multiprocessors)"));
  CHECK_THROWS_AS(
      kernel.launch({.stream = Stream::legacy(registry.by_index(1))}, arguments.pointers),
      InvalidArgument);
  CHECK(FakeDriver::get().calls("cuLaunchKernelEx") == 0);
}

TEST_CASE("launch: the number of arguments must be the signature's") {
  Device& device = fresh_device();
  const Kernel kernel = saxpy(device);
  Arguments arguments;
  const std::string text =
      message_of<ArgumentError>([&] { kernel.launch({}, std::span(arguments.pointers).first(2)); });
  CHECK(text == "saxpy(float a, const float* x, int n): 2 arguments for 3 parameters");
  CHECK(FakeDriver::get().launches.empty());
}

TEST_CASE("launch: dynamic shared memory above the default is opted in once, and only grows") {
  Device& device = fresh_device();
  const Kernel kernel = saxpy(device);
  Arguments arguments;
  const auto set = [] { return FakeDriver::get().calls("cuFuncSetAttribute"); };
  kernel.launch({.shared_bytes = 49152}, arguments.pointers);
  CHECK(set() == 0);
  kernel.launch({.shared_bytes = 100000}, arguments.pointers);
  kernel.launch({.shared_bytes = 100000}, arguments.pointers);
  kernel.launch({.shared_bytes = 60000}, arguments.pointers);
  CHECK(set() == 1);
  CHECK(FakeDriver::get().notes.back() ==
        std::pair<int, CUresult>(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                 static_cast<CUresult>(100000)));
  FakeDriver::get().fail("cuFuncSetAttribute", CUDA_ERROR_INVALID_VALUE);
  CHECK_THROWS_AS(kernel.launch({.shared_bytes = 200000}, arguments.pointers), DriverError);
  kernel.launch({.shared_bytes = 200000}, arguments.pointers);
  CHECK(set() == 3);
}

TEST_CASE("launch: clusters beyond the portable size are opted in once") {
  Device& device = fresh_device();
  const Kernel kernel = saxpy(device);
  Arguments arguments;
  kernel.launch({.grid = {8, 1, 1}, .cluster = {8, 1, 1}}, arguments.pointers);
  CHECK(FakeDriver::get().calls("cuFuncSetAttribute") == 0);
  kernel.launch({.grid = {12, 1, 1}, .cluster = {12, 1, 1}}, arguments.pointers);
  kernel.launch({.grid = {12, 1, 1}, .cluster = {12, 1, 1}}, arguments.pointers);
  CHECK(FakeDriver::get().calls("cuFuncSetAttribute") == 1);
}

TEST_CASE("launch: failures name the kernel and its line, and sticky ones latch") {
  Device& device = fresh_device();
  const Kernel kernel = saxpy(device);
  Arguments arguments;
  FakeDriver::get().fail("cuLaunchKernelEx", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  CHECK(contains(message_of<DriverError>([&] { kernel.launch({}, arguments.pointers); }),
                 "kernel saxpy"));
  kernel.launch({}, arguments.pointers, LaunchSite::here());
  FakeDriver::get().fail("cuCtxSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS);
  const std::string text = message_of<DeviceLost>([&] { device.synchronize(); });
  CHECK(contains(text, "saxpy ("));
  CHECK(contains(text, "kernel_test.cpp:"));
  CHECK_THROWS_AS(kernel.launch({}, arguments.pointers), DeviceLost);
}

TEST_CASE("launch: many threads may launch one kernel, also while its shared memory grows") {
  Device& device = fresh_device();
  const Kernel kernel = saxpy(device);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Arguments arguments;
      for (unsigned i = 0; i < 500; ++i) {
        kernel.launch({.shared_bytes = 40000 + 100 * (i % 50) + 1000 * t}, arguments.pointers);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(FakeDriver::get().launches.size() == 2000);
}

TEST_CASE("kernel: occupancy and the block that the driver suggests") {
  Device& device = fresh_device();
  const Kernel kernel =
      saxpy(device, {.name = "saxpy", .parameter_sizes = {4, 8, 4}, .max_threads = 768});
  CHECK(kernel.occupancy(256) == 8);
  CHECK(kernel.suggest_block() == 768);
  CHECK(kernel.occupancy(128, 100000) == 16);
  CHECK(FakeDriver::get().calls("cuFuncSetAttribute") == 1);
  CHECK_THROWS_AS(kernel.occupancy(0), LaunchConfigError);
  CHECK_THROWS_AS(kernel.occupancy(1024), LaunchConfigError);
  CHECK_THROWS_AS(kernel.occupancy(32, std::size_t{1} << 40), LaunchConfigError);
  CHECK_THROWS_AS(kernel.suggest_block(std::size_t{1} << 33), LaunchConfigError);
}

TEST_CASE("launch: the largest cluster is the driver's, and more is refused before it") {
  Device& device = fresh_device();
  const Kernel kernel = saxpy(device);
  Arguments arguments;
  CHECK(kernel.max_cluster(128) == 12);
  const LaunchConfig too_large{.grid = {16, 1, 1}, .block = {128, 1, 1}, .cluster = {16, 1, 1}};
  const std::string text =
      message_of<LaunchConfigError>([&] { kernel.launch(too_large, arguments.pointers); });
  CHECK(contains(text, "cluster of 16 blocks of 128 threads"));
  CHECK(contains(text, "at most 12 blocks for kernel saxpy"));
  CHECK_THROWS_AS(kernel.check(too_large), LaunchConfigError);
  CHECK(FakeDriver::get().launches.empty());
  CHECK_THROWS_AS(kernel.max_cluster(4096), LaunchConfigError);
  CHECK_THROWS_AS(kernel.max_cluster(0), LaunchConfigError);
}

TEST_CASE("launch: priorities and events are checked, then handed over as attributes") {
  Device& device = fresh_device();
  const Kernel kernel = saxpy(device);
  Arguments arguments;
  CHECK(contains(
      message_of<LaunchConfigError>([&] { kernel.launch({.priority = 1}, arguments.pointers); }),
      "priority of 1: between -5 (highest) and 0"));
  CHECK_THROWS_AS(kernel.launch({.priority = -6}, arguments.pointers), LaunchConfigError);
  const Event timed(device);
  CHECK(contains(message_of<LaunchConfigError>(
                     [&] { kernel.launch({.programmatic_event = timed}, arguments.pointers); }),
                 "must be made without"));
  CHECK_THROWS_AS(kernel.launch({.launch_completion_event = timed}, arguments.pointers),
                  LaunchConfigError);
  CHECK(FakeDriver::get().launches.empty());
  const Event plain(device, false);
  kernel.launch({.programmatic_event = plain,
                 .programmatic_event_at_start = true,
                 .launch_completion_event = plain},
                arguments.pointers);
  const auto& sent = FakeDriver::get().launches.back().attributes;
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
  CHECK(sent[0].value.programmaticEvent.event == plain.handle());
  CHECK(sent[0].value.programmaticEvent.triggerAtBlockStart == 1);
  CHECK(sent[1].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
  CHECK(sent[1].value.launchCompletionEvent.event == plain.handle());
}

namespace {

/// Launches each kernel twice and counts.
struct TwiceHook : LaunchHook {
  explicit TwiceHook(LaunchHook* around = nullptr) : outside(around) {}
  void launch(const Kernel& kernel, const LaunchConfig& config, std::span<void* const> arguments,
              const LaunchSite& site) override {
    ++calls;
    CHECK(current_launch_hook() == outside);
    kernel.launch(config, arguments, site);
    kernel.launch(config, arguments, site);
  }
  LaunchHook* const outside;
  int calls = 0;
};

}  // namespace

TEST_CASE("launch hook: takes the place of a launch on its thread, after the limits") {
  Device& device = fresh_device();
  const Kernel kernel = saxpy(device);
  Arguments arguments;
  TwiceHook outer;
  TwiceHook inner(&outer);
  CHECK(current_launch_hook() == nullptr);
  const auto launches = [] { return FakeDriver::get().calls("cuLaunchKernelEx"); };
  const int before = launches();
  {
    const LaunchHookScope scope(&outer);
    kernel.launch({}, arguments.pointers);
    CHECK(launches() == before + 2);
    CHECK_THROWS_AS(kernel.launch({.grid = {0, 1, 1}}, arguments.pointers), LaunchConfigError);
    CHECK_THROWS_AS(kernel.launch({}, std::span(arguments.pointers).first(1)), ArgumentError);
    std::thread([&] { kernel.launch({}, arguments.pointers); }).join();
    CHECK(launches() == before + 3);
    {
      const LaunchHookScope nested(&inner);
      kernel.launch({}, arguments.pointers);
      CHECK(launches() == before + 7);  // each launch of the inner hook goes to the outer one
      const LaunchHookScope none(nullptr);
      kernel.launch({}, arguments.pointers);
      CHECK(launches() == before + 8);
    }
    CHECK(current_launch_hook() == &outer);
  }
  CHECK(current_launch_hook() == nullptr);
  CHECK(outer.calls == 3);
  CHECK(inner.calls == 1);
}
