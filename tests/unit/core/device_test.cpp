// Devices: properties, context guards, errors for the driver's results, and a lost device.
#include "core/device.h"

#include "base/errors.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <array>

using namespace kernwright;
using testing::contains;
using testing::FakeDriver;
using testing::fresh_device;
using testing::LogLines;
using testing::message_of;

namespace {

SourceLocation resolve(const void*, std::uint64_t line) {
  return {"app.py", static_cast<int>(line)};
}

/// The fake driver in the place of the simulated device.
Device& fresh_simulated() {
  static auto* const kept = new std::vector<std::unique_ptr<DeviceRegistry>>;
  FakeDriver::get().reset();
  kept->push_back(std::make_unique<DeviceRegistry>(
      DeviceRegistry::Options{.cuda = nullptr,
                              .cuda_reason = {},
                              .sim = []() -> const DriverApi& { return FakeDriver::get().api(); },
                              .wanted = "sim"}));
  return kept->back()->preferred();
}

}  // namespace

TEST_CASE("device: properties come from the driver, attributes only once") {
  Device& device = fresh_device();
  CHECK(device.name() == "Fake GPU");
  CHECK(device.identify() == "cuda:0 (Fake GPU)");
  CHECK(device.label() == "cuda:0");
  CHECK(device.compute_capability().number() == 90);
  CHECK(device.capabilities().wgmma);
  CHECK(device.driver_version() == 12080);
  CHECK(device.memory_info().total == FakeDriver::get().total_memory);
  const int before = FakeDriver::get().calls("cuDeviceGetAttribute");
  for (int i = 0; i < 5; ++i) {
    CHECK(device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) == 4);
  }
  CHECK(FakeDriver::get().calls("cuDeviceGetAttribute") == before + 1);
}

TEST_CASE("device: an attribute that the driver does not know is an error that names it") {
  Device& device = fresh_device();
  const std::string text = message_of<DriverError>(
      [&] { (void)device.attribute(static_cast<CUdevice_attribute>(9999)); });
  CHECK(contains(text, "attribute 9999"));
  CHECK(contains(text, "CUDA_ERROR_INVALID_VALUE (1)"));
}

TEST_CASE("device: the primary context is retained once, however often it is asked for") {
  Device& device = fresh_device();
  const CUcontext context = device.context();
  CHECK(context != nullptr);
  CHECK(device.context() == context);
  CHECK(FakeDriver::get().calls("cuDevicePrimaryCtxRetain") == 1);
  CHECK(testing::fake_current_context() == nullptr);

  Device& other = fresh_device();
  FakeDriver::get().fail("cuDevicePrimaryCtxRetain", CUDA_ERROR_DEVICE_UNAVAILABLE);
  CHECK_THROWS_AS(other.context(), DriverError);
  CHECK(other.context() != nullptr);
}

TEST_CASE("context guard: enters and leaves, whatever was current before") {
  auto& registry = testing::fake_registry();
  Device& first = registry.by_index(0);
  Device& second = registry.by_index(1);
  {
    const ContextGuard outer(first);
    CHECK(testing::fake_current_context() == first.context());
    {
      const ContextGuard inner(second);
      CHECK(testing::fake_current_context() == second.context());
      const int before = FakeDriver::get().calls("cuCtxSetCurrent");
      { const ContextGuard same(second); }
      CHECK(FakeDriver::get().calls("cuCtxSetCurrent") == before);
    }
    CHECK(testing::fake_current_context() == first.context());
  }
  CHECK(testing::fake_current_context() == nullptr);
}

TEST_CASE("context guard: the caller's context is restored when the call in it fails") {
  auto& registry = testing::fake_registry();
  Device& first = registry.by_index(0);
  Device& second = registry.by_index(1);
  const ContextGuard guard(second);
  FakeDriver::get().fail("cuMemGetInfo", CUDA_ERROR_UNKNOWN);
  CHECK_THROWS_AS(first.memory_info(), DriverError);
  CHECK(testing::fake_current_context() == second.context());
}

TEST_CASE("check: success does nothing, other results name call, device and object") {
  Device& device = fresh_device();
  device.check(CUDA_SUCCESS, "cuAnything");
  try {
    device.check(CUDA_ERROR_INVALID_VALUE, "cuAnything", "stream 7");
    FAIL("nothing was thrown");
  } catch (const DriverError& error) {
    CHECK(error.code == 1);
    CHECK(error.name == "CUDA_ERROR_INVALID_VALUE");
    const std::string text = error.what();
    CHECK(contains(text, "cuAnything on cuda:0 (Fake GPU), stream 7 failed"));
    CHECK(contains(text, "as the test planned"));
  }
  CHECK(contains(message_of<DriverError>([&] { device.check(static_cast<CUresult>(4242), "cuX"); }),
                 "unknown result (4242)"));
}

TEST_CASE("check: want of memory is OutOfMemory with what is free") {
  Device& device = fresh_device();
  const ContextGuard guard(device);
  try {
    device.check(CUDA_ERROR_OUT_OF_MEMORY, "cuAnything");
    FAIL("nothing was thrown");
  } catch (const OutOfMemory& error) {
    CHECK(error.free == FakeDriver::get().total_memory);
    CHECK(error.used == 0);
  }
  CHECK_FALSE(device.lost());
}

TEST_CASE("check: every sticky result latches DeviceLost, and no other result does") {
  for (const DriverEnumerator& row : driver_enumerators()) {
    if (std::string_view(row.type) != "CUresult" || row.value == CUDA_SUCCESS) continue;
    CAPTURE(row.name);
    Device& device = fresh_device();
    const auto result = static_cast<CUresult>(row.value);
    const std::array sticky = {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721};
    const bool expected = std::find(sticky.begin(), sticky.end(), row.value) != sticky.end();
    CHECK_THROWS_AS(device.check(result, "cuAnything"), Error);
    CHECK(device.lost() == expected);
    CHECK(is_sticky(result) == expected);
  }
}

TEST_CASE("lost: the message names the last launches, and later calls fail at once with it") {
  Device& device = fresh_device();
  Device& other = *testing::fake_registry().devices().at(1);
  device.note_launch(KernelTag("fill<float>", "f"), {nullptr, 7, resolve});
  device.note_launch(KernelTag("saxpy", "s"), {nullptr, 12, resolve});
  FakeDriver::get().fail("cuCtxSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS);
  std::string first;
  try {
    device.synchronize();
    FAIL("nothing was thrown");
  } catch (const DeviceLost& error) {
    first = error.what();
    CHECK(error.code == 700);
    CHECK(error.name == "CUDA_ERROR_ILLEGAL_ADDRESS");
  }
  CHECK(contains(first, "cuda:0 (Fake GPU) is lost: cuCtxSynchronize reported"));
  CHECK(contains(first, "saxpy (app.py:12), fill<float> (app.py:7)"));
  CHECK(contains(first, "start a new process, or try device.reset()"));
  const int calls = FakeDriver::get().calls("cuMemGetInfo");
  CHECK(message_of<DeviceLost>([&] { device.memory_info(); }) == first);
  CHECK(message_of<DeviceLost>([&] { device.synchronize(); }) == first);
  CHECK(message_of<DeviceLost>([&] { const ContextGuard guard(device); }) == first);
  CHECK(FakeDriver::get().calls("cuMemGetInfo") == calls);
  other.synchronize();
  CHECK_FALSE(other.lost());
}

TEST_CASE("simulated device: a report becomes its own exception and nothing is latched") {
  Device& device = fresh_simulated();
  CHECK(device.is_simulated());
  device.note_launch(KernelTag("scale<float, 4>", "_Z5scale"), {nullptr, 31, resolve});
  Fault report;
  report.kind = FaultKind::bounds;
  report.message = "write of 4 bytes outside every allocation";
  report.kernel = "_Z5scale";
  report.line = 3;

  FakeDriver::get().report = report;
  FakeDriver::get().fail("cuCtxSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS);
  try {
    device.synchronize();
    FAIL("nothing was thrown");
  } catch (const DeviceFault& fault) {
    CHECK(fault.report.kind == FaultKind::bounds);
    CHECK(fault.report.line == 3);
    CHECK(contains(fault.what(), "launched as scale<float, 4> at app.py:31"));
  }
  CHECK_FALSE(device.lost());
  device.synchronize();

  const auto throw_as = [&](FaultKind kind, CUresult result) {
    report.kind = kind;
    report.opcode = "foo.bar.b32";
    report.ptx_line = 17;
    FakeDriver::get().report = report;
    FakeDriver::get().fail("cuCtxSynchronize", result);
    device.synchronize();
  };
  CHECK_THROWS_AS(throw_as(FaultKind::timeout, CUDA_ERROR_LAUNCH_TIMEOUT), Timeout);
  CHECK_THROWS_AS(throw_as(FaultKind::assertion, CUDA_ERROR_ASSERT), DeviceFault);
  CHECK_THROWS_AS(throw_as(FaultKind::invalid_ptx, CUDA_ERROR_INVALID_PTX), DriverError);
  report.line = 0;
  try {
    throw_as(FaultKind::unsupported, CUDA_ERROR_INVALID_PTX);
    FAIL("nothing was thrown");
  } catch (const UnsupportedInstruction& error) {
    CHECK(error.opcode == "foo.bar.b32");
    CHECK(error.line == 17);
  }
  FakeDriver::get().fail("cuCtxSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_THROWS_AS(device.synchronize(), DriverError);
  CHECK_FALSE(device.lost());
}

TEST_CASE("synchronize: launches that ended well are no longer named") {
  Device& device = fresh_device();
  device.note_launch(KernelTag("good", "g"), {});
  device.synchronize();
  FakeDriver::get().fail("cuCtxSynchronize", CUDA_ERROR_LAUNCH_FAILED);
  const std::string text = message_of<DeviceLost>([&] { device.synchronize(); });
  CHECK_FALSE(contains(text, "good"));
}

TEST_CASE("synchronize: a deadline that holds, one that passes, and an error within it") {
  using namespace std::chrono_literals;
  Device& device = fresh_device();
  device.synchronize(10s);
  device.note_launch(KernelTag("slow", "s"), {});
  {
    // The fake driver's own lock makes the wait hang until it is given back.
    const std::unique_lock hang(FakeDriver::get().mutex);
    const std::string text = message_of<Timeout>([&] { device.synchronize(20ms); });
    CHECK(contains(text, "cuda:0 (Fake GPU) is not done after 0.02 s"));
    CHECK(contains(text, "slow"));
  }
  FakeDriver::get().fail("cuCtxSynchronize", CUDA_ERROR_ASSERT, 2);
  CHECK_THROWS_AS(device.synchronize(10s), DeviceLost);
}

TEST_CASE("release guard: reports what is refused, and leaves lost devices alone") {
  Device& device = fresh_device();
  LogLines log;
  {
    ReleaseGuard guard(device);
    CHECK(static_cast<bool>(guard));
    CHECK(testing::fake_current_context() == device.context());
    guard.report(CUDA_SUCCESS, "cuXDestroy");
    guard.report(CUDA_ERROR_DEINITIALIZED, "cuXDestroy");
    CHECK(log.lines.empty());
    guard.report(CUDA_ERROR_INVALID_HANDLE, "cuXDestroy");
    REQUIRE(log.lines.size() == 1);
    CHECK(contains(log.lines[0], "cuXDestroy on cuda:0 (Fake GPU)"));
    guard.report(CUDA_ERROR_LAUNCH_FAILED, "cuXDestroy");
  }
  CHECK(testing::fake_current_context() == nullptr);
  CHECK(device.lost());
  ReleaseGuard guard(device);
  CHECK_FALSE(static_cast<bool>(guard));
}
