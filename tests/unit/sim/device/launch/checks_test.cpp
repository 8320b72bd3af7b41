// Scopes of checks and of schedules: they end in any order and on any thread, with the right rest
// in force.
#include "sim/checks.h"

#include "driver/driver_rows.h"
#include "unit/sim/check/check_kernel.h"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

constexpr CheckSet kOnlyInit{.init = true}, kOnlyRace{.race = true}, kOnlySync{.sync = true};

/// A kernel with a race between its two warps, ready to be launched.
class RacingKernel {
 public:
  explicit RacingKernel(const DriverApi& api) : api_(api) {
    const std::string text = testing::kernel("st.shared.u32 [s], %r1;\n");
    REQUIRE(api_.cuModuleLoadData(&module_, text.c_str()) == CUDA_SUCCESS);
    REQUIRE(api_.cuModuleGetFunction(&function_, module_, "k") == CUDA_SUCCESS);
    REQUIRE(api_.cuMemAlloc(&buffer_, 8192) == CUDA_SUCCESS);
  }
  ~RacingKernel() {
    CHECK(api_.cuMemFree(buffer_) == CUDA_SUCCESS);
    CHECK(api_.cuModuleUnload(module_) == CUDA_SUCCESS);
  }
  void launch() {
    void* parameters[] = {&buffer_};
    CHECK(api_.cuLaunchKernel(function_, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr) ==
          CUDA_SUCCESS);
  }

 private:
  const DriverApi& api_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  CUdeviceptr buffer_ = 0;
};

void end_scope(void* scope) { static_cast<std::optional<CheckScope>*>(scope)->reset(); }

}  // namespace

TEST_CASE("check scopes: each leaves the checks of the others on, in whatever order they end") {
  const CurrentDevice device;
  const CheckSet outside = current_checks();
  auto first = std::make_unique<CheckScope>(kOnlyInit);
  auto second = std::make_unique<CheckScope>(kOnlyRace);
  auto third = std::make_unique<CheckScope>(kOnlySync);
  CHECK(current_checks() == CheckSet{true, true, true});
  first.reset();
  CHECK(current_checks() == CheckSet{outside.init, true, true});
  third.reset();
  CHECK(current_checks() == CheckSet{outside.init, true, outside.sync});
  second.reset();
  CHECK(current_checks() == outside);
}

TEST_CASE("check scopes: what is turned on beside them stays as it is") {
  const CurrentDevice device;
  const CheckSet outside = set_checks(kOnlySync);
  {
    const CheckScope scope(kOnlyRace);
    CHECK(current_checks() == CheckSet{false, true, true});
    CHECK(set_checks({}) == kOnlySync);
    CHECK(current_checks() == kOnlyRace);
  }
  CHECK(current_checks() == CheckSet{});
  set_checks(outside);
}

TEST_CASE("check scopes: the innermost living one collects") {
  CurrentDevice device;
  RacingKernel kernel(device.api);
  auto outer = std::make_unique<CheckScope>(kOnlyRace);
  auto middle = std::make_unique<CheckScope>(CheckSet{});
  const CheckScope inner({});
  outer.reset();
  kernel.launch();
  CHECK(inner.findings().empty());  // nobody looks for races any more
  outer = std::make_unique<CheckScope>(kOnlyRace);
  middle.reset();
  kernel.launch();
  CHECK(inner.findings().empty());
  CHECK(outer->findings().size() == 1);
  outer.reset();
  const CheckScope last(kOnlyRace);
  kernel.launch();
  CHECK(last.findings().size() == 1);
  CHECK(inner.findings().empty());
}

TEST_CASE("check scopes: a thread's launches are for its own scopes, else for the last of all") {
  CurrentDevice device;
  RacingKernel kernel(device.api);
  const CheckScope here(kOnlyRace);
  std::thread([&] {
    const CurrentDevice there;
    kernel.launch();
    CHECK(here.findings().size() == 1);
    const CheckScope own({});
    kernel.launch();
    CHECK(own.findings().size() == 1);
  }).join();
  CHECK(here.total() == 63);
  kernel.launch();
  CHECK(here.total() == 126);
}

TEST_CASE("check scopes: threads make and end them while others launch") {
  CurrentDevice device;
  RacingKernel kernel(device.api);
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&] {
      const CurrentDevice own;
      for (int round = 0; round < 25; ++round) {
        const CheckScope scope(kOnlyRace);
        kernel.launch();
        CHECK(scope.findings().size() == 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(current_checks().race);
}

TEST_CASE("check scopes: one that ends in a host function is gone") {
  CurrentDevice device;
  RacingKernel kernel(device.api);
  std::optional<CheckScope> scope;
  scope.emplace(kOnlyRace);
  CUstream stream = nullptr;
  REQUIRE(device.api.cuStreamCreateWithPriority(&stream, 0, 0) == CUDA_SUCCESS);
  REQUIRE(device.api.cuLaunchHostFunc(stream, end_scope, &scope) == CUDA_SUCCESS);
  REQUIRE(device.api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK_FALSE(scope.has_value());
  CHECK_FALSE(current_checks().race);
  kernel.launch();
  CHECK(device.api.cuStreamDestroy(stream) == CUDA_SUCCESS);
}

TEST_CASE("schedule scopes: the outer one goes on as if the inner one had not been") {
  CurrentDevice device;
  const std::string text = testing::kernel(
      "setp.ne.u32 %p1, %r1, 0;\n@%p1 ret;\nadd.u32 %r2, %r2, 1;\nst.global.u32 [%rd1], %r2;\n");
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr buffer = 0;
  REQUIRE(device.api.cuModuleLoadData(&module, text.c_str()) == CUDA_SUCCESS);
  REQUIRE(device.api.cuModuleGetFunction(&function, module, "k") == CUDA_SUCCESS);
  REQUIRE(device.api.cuMemAlloc(&buffer, 8192) == CUDA_SUCCESS);
  const auto last_block = [&] {
    void* parameters[] = {&buffer};
    CHECK(device.api.cuLaunchKernel(function, 32, 1, 1, 32, 1, 1, 0, nullptr, parameters,
                                    nullptr) == CUDA_SUCCESS);
    unsigned word = 0;
    CHECK(device.api.cuMemcpyDtoH(&word, buffer, sizeof word) == CUDA_SUCCESS);
    return word;
  };
  std::vector<unsigned> alone, around;
  {
    const ScheduleScope outer(3);
    for (int i = 0; i < 6; ++i) alone.push_back(last_block());
  }
  {
    const ScheduleScope outer(3);
    auto first = std::make_unique<ScheduleScope>(4);
    for (int i = 0; i < 3; ++i) around.push_back((first.reset(), last_block()));
    auto second = std::make_unique<ScheduleScope>(5);
    auto third = std::make_unique<ScheduleScope>(6);
    last_block();
    second.reset();
    last_block();
    third.reset();
    for (int i = 0; i < 3; ++i) around.push_back(last_block());
  }
  CHECK(alone == around);
  CHECK(device.api.cuMemFree(buffer) == CUDA_SUCCESS);
  CHECK(device.api.cuModuleUnload(module) == CUDA_SUCCESS);
}
