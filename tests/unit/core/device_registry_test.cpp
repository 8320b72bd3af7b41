// The choice of a device: every value of KERNWRIGHT_DEVICE with and without a driver or a GPU.
#include "core/device_registry.h"

#include "base/errors.h"
#include "core/device.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

using namespace kernwright;
using testing::contains;
using testing::FakeDriver;
using testing::LogLines;
using testing::message_of;

namespace {

constexpr const char* kNoDriver = "CUDA driver not detected: libcuda.so.1 could not be opened";
constexpr const char* kNoGpu = "no GPU devices found: the driver reports none";

/// The fake driver once more, in the place of the simulated device.
const DriverApi& sim_table() { return FakeDriver::get().api(); }

DeviceRegistry::Options options(std::string wanted, bool cuda, const char* reason = kNoDriver) {
  return {.cuda = cuda ? &FakeDriver::get().api() : nullptr,
          .cuda_reason = cuda ? "" : reason,
          .sim = sim_table,
          .wanted = std::move(wanted)};
}

}  // namespace

TEST_CASE("device names: what is accepted and what is refused") {
  FakeDriver::get().reset();
  DeviceRegistry registry(options("auto", true));
  for (const char* first : {"", "auto", "cuda", "cuda:0"}) {
    CAPTURE(first);
    CHECK(registry.by_name(first).label() == "cuda:0");
  }
  CHECK(registry.by_name("cuda:1").label() == "cuda:1");
  CHECK(registry.by_name("sim").label() == "sim:0");
  CHECK(registry.by_name("sim:0").label() == "sim:0");
  for (const char* wrong : {"gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999", "sim: 1",
                            "CUDA", "cuda:0:1", "simulated", "auto:1"}) {
    CAPTURE(wrong);
    const std::string text = message_of<DeviceNotFound>([&] { registry.by_name(wrong); });
    CHECK(contains(text, "'" + std::string(wrong) + "' names no device"));
  }
}

TEST_CASE("registry: auto takes the first GPU, and the simulated device is there as well") {
  FakeDriver::get().reset();
  LogLines log;
  DeviceRegistry registry(options("auto", true));
  CHECK(registry.devices().size() == 2);
  CHECK(registry.preferred().identify() == "cuda:0 (Fake GPU)");
  CHECK(registry.by_name("auto").label() == "cuda:0");
  CHECK(registry.by_name("cuda:1").ordinal() == 1);
  CHECK(registry.by_index(1).label() == "cuda:1");
  Device& sim = registry.by_name("sim");
  CHECK(sim.is_simulated());
  CHECK(sim.identify() == "sim:0");
  CHECK(&registry.by_name("sim:0") == &sim);
  CHECK(registry.cuda_unavailable_reason().empty());
  CHECK(log.lines.empty());
}

TEST_CASE("registry: auto without a driver runs simulated and says so once") {
  FakeDriver::get().reset();
  LogLines log;
  DeviceRegistry registry(options("auto", false));
  CHECK(registry.preferred().identify() == "sim:0");
  CHECK(registry.devices().size() == 2);
  CHECK(registry.by_index(0).is_simulated());
  REQUIRE(log.lines.size() == 1);
  CHECK(log.lines[0] == "CUDA driver not detected: running on the simulated device");
  CHECK(registry.cuda_unavailable_reason() == kNoDriver);
}

TEST_CASE("registry: auto with a driver that has no GPU says so as well") {
  FakeDriver::get().reset();
  LogLines log;
  SUBCASE("the driver said so when it was opened") {
    DeviceRegistry registry(options("auto", false, kNoGpu));
    CHECK(registry.preferred().is_simulated());
  }
  SUBCASE("the driver counts no devices") {
    FakeDriver::get().fail("cuDeviceGetCount", CUDA_ERROR_NO_DEVICE);
    DeviceRegistry registry(options("auto", true));
    CHECK(registry.preferred().is_simulated());
    CHECK(contains(registry.cuda_unavailable_reason(), "CUDA_VISIBLE_DEVICES"));
  }
  REQUIRE(log.lines.size() == 1);
  CHECK(log.lines[0] == "no GPU devices found: running on the simulated device");
}

TEST_CASE("registry: asking for a GPU that is not there raises, with what to do") {
  FakeDriver::get().reset();
  LogLines log;
  DeviceRegistry without_driver(options("cuda", false));
  const std::string no_driver = message_of<DriverNotFound>([&] { without_driver.preferred(); });
  CHECK(contains(no_driver, "KERNWRIGHT_DEVICE=cuda"));
  CHECK(contains(no_driver, kNoDriver));
  CHECK(contains(no_driver, "install the NVIDIA driver"));
  CHECK(without_driver.devices().empty());
  CHECK_THROWS_AS(without_driver.by_index(0), DriverNotFound);
  CHECK_THROWS_AS(without_driver.by_name("cuda:0"), DriverNotFound);

  DeviceRegistry without_gpu(options("cuda:0", false, kNoGpu));
  CHECK_THROWS_AS(without_gpu.preferred(), DeviceNotFound);
  CHECK(contains(message_of<DeviceNotFound>([&] { without_gpu.preferred(); }), kNoGpu));
  CHECK(log.lines.empty());
}

TEST_CASE("registry: indices and names that do not exist list what does") {
  FakeDriver::get().reset();
  DeviceRegistry registry(options("auto", true));
  for (const int index : {-1, 2, 1 << 30}) {
    const std::string text = message_of<DeviceNotFound>([&] { registry.by_index(index); });
    CHECK(contains(text, "there are 2"));
    CHECK(contains(text, "cuda:1 (Fake GPU)"));
  }
  CHECK(contains(message_of<DeviceNotFound>([&] { registry.by_name("cuda:7"); }), "cuda:7"));
  CHECK(contains(message_of<DeviceNotFound>([&] { registry.by_name("sim:7"); }), "sim:7"));
  const std::string unknown = message_of<DeviceNotFound>([&] { registry.by_name("GPU-none"); });
  CHECK(contains(unknown, "'GPU-none'"));
  CHECK(contains(unknown, "sim:0"));

  DeviceRegistry wrong(options("tpu", true));
  const std::string text = message_of<DeviceNotFound>([&] { wrong.preferred(); });
  CHECK(contains(text, "KERNWRIGHT_DEVICE=tpu"));
}

TEST_CASE("registry: a UUID or a PCI bus id names a device") {
  FakeDriver::get().reset();
  DeviceRegistry registry(options("auto", true));
  Device& second = registry.by_index(1);
  CHECK(second.uuid() == "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae01");
  CHECK(&registry.by_name(second.uuid()) == &second);
  CHECK(second.pci_bus_id() == "0000:66:00.0");
  for (const char* name : {"0000:66:00.0", "00000000:66:00.0", "66:00.0", "0:66:0.0"}) {
    CHECK(&registry.by_name(name) == &second);
  }
  for (const char* name : {"0001:66:00.0", "66:00", "66:00.1", "0000:66:00.", ":66:00.0", "GPU-"}) {
    CHECK_THROWS_AS(registry.by_name(name), DeviceNotFound);
  }
  // The first digits do where they mean one device.
  CHECK(&registry.by_name("GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae01") == &second);
  const std::string text = message_of<DeviceNotFound>([&] { registry.by_name("GPU-a0a1"); });
  CHECK(contains(text, "begins the UUIDs of "));
  CHECK(contains(text, second.uuid()));
  FakeDriver::get().reset();
  FakeDriver::get().device_count = 1;
  DeviceRegistry single(options("auto", false));
  CHECK(&single.by_name("GPU-a0a1") == &single.by_index(0));
}

TEST_CASE("registry: sim is taken although there is a GPU, and may be absent altogether") {
  FakeDriver::get().reset();
  DeviceRegistry registry(options("sim:1", true));
  CHECK(registry.preferred().label() == "sim:1");
  CHECK(registry.devices().front()->is_simulated());

  auto without = options("auto", false);
  without.sim = nullptr;
  DeviceRegistry nothing(without);
  LogLines log;
  CHECK(nothing.devices().empty());
  CHECK(contains(message_of<DeviceNotFound>([&] { nothing.preferred(); }), "none"));
  CHECK_THROWS_AS(nothing.by_name("sim"), DeviceNotFound);
  CHECK(log.lines.empty());
}

TEST_CASE("registry: a driver that fails while listing raises its error") {
  FakeDriver::get().reset();
  FakeDriver::get().fail("cuDeviceGetCount", CUDA_ERROR_UNKNOWN);
  CHECK_THROWS_AS(DeviceRegistry(options("auto", true)), DriverError);
  FakeDriver::get().fail("cuDeviceGet", CUDA_ERROR_INVALID_DEVICE, 1, 1);
  CHECK_THROWS_AS(DeviceRegistry(options("auto", true)), DriverError);
  FakeDriver::get().fail("cuInit", CUDA_ERROR_UNKNOWN);
  DeviceRegistry registry(options("sim", false));
  CHECK_THROWS_AS(registry.preferred(), DriverError);
  CHECK(registry.preferred().is_simulated());
}
