// Additions of adaptors: a limit, an account by line, planned failures.
#include "base/errors.h"
#include "core/device.h"
#include "memory/allocation_site.h"
#include "memory/failing_adaptor.h"
#include "memory/limiting_adaptor.h"
#include "memory/pool/pool_resource.h"
#include "memory/tracking_adaptor.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <vector>

using namespace kernwright;
using testing::contains;
using testing::fresh_device;
using testing::message_of;

TEST_CASE("limiting adaptor: refuses what goes over, before upstream is asked") {
  Device& device = fresh_device();
  LimitingAdaptor limited(std::make_shared<DeviceResource>(device), 1000);
  const CUdeviceptr first = limited.allocate(600, {});
  const std::string message = message_of<OutOfMemory>([&] { limited.allocate(401, {}); });
  CHECK(contains(message, "over the limit of 1000 bytes; 600 bytes used"));
  CHECK(testing::FakeDriver::get().calls("cuMemAlloc") == 1);
  const CUdeviceptr second = limited.allocate(400, {});
  CHECK_THROWS_AS(limited.allocate(1, {}), OutOfMemory);
  CHECK(limited.stats().failures == 2);
  CHECK(limited.stats().limit == 1000);
  CHECK_THROWS_AS(limited.set_limit(999), InvalidArgument);
  testing::LogLines log;
  limited.deallocate(first, 1, {});  // refused, so it makes no room
  CHECK(log.lines.size() == 1);
  CHECK_THROWS_AS(limited.allocate(1, {}), OutOfMemory);
  limited.release(first, 600, {});
  limited.set_limit(400);
  CHECK_THROWS_AS(limited.allocate(1, {}), OutOfMemory);
  limited.deallocate(second, 400, {});
  testing::FakeDriver::get().fail("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_THROWS_AS(limited.allocate(400, {}), OutOfMemory);
  limited.deallocate(limited.allocate(400, {}), 400, {});  // failures upstream count as nothing
}

TEST_CASE("tracking adaptor: knows lines and sizes, and tells what is left at its end") {
  Device& device = fresh_device();
  testing::LogLines log;
  {
    TrackingAdaptor tracked(std::make_shared<DeviceResource>(device));
    CHECK(tracked.report().empty());
    const AllocationSiteScope outer(LaunchSite::here("app.cpp", 10));
    std::vector<CUdeviceptr> blocks;
    for (int i = 0; i < 3; ++i) {
      const AllocationSiteScope inner(LaunchSite::here("library.cpp", 99));
      blocks.push_back(tracked.allocate(1 << 20, {}));
    }
    CHECK(tracked.report() ==
          "3 MiB in 3 allocations are in use: 3 MiB in 3 allocations from app.cpp:10");
    CHECK_THROWS_AS(tracked.release(blocks[0], 5, {}), InvalidArgument);
    tracked.release(blocks[0], 1 << 20, {});
    tracked.deallocate(blocks[1], 1 << 20, {});
    CHECK(tracked.records().size() == 1);
    CHECK(log.lines.empty());
  }
  REQUIRE(log.lines.size() == 1);
  CHECK(contains(log.lines[0], "never freed: 1 MiB in 1 allocation is in use"));
  CHECK(contains(log.lines[0], "app.cpp:10"));
}

TEST_CASE("failing adaptor: fails the chosen calls, and the program goes on") {
  Device& device = fresh_device();
  const auto failing =
      std::make_shared<FailingAdaptor>(std::make_shared<DeviceResource>(device), 2, 2);
  // A pool over it asks again with a smaller segment, and survives passing failures.
  PoolResource pool(failing);
  const CUdeviceptr first = pool.allocate(1 << 20, {});
  const CUdeviceptr second = pool.allocate(4 << 20, {});
  CHECK(failing->calls() >= 3);
  pool.deallocate(first, 1 << 20, {});
  pool.deallocate(second, 4 << 20, {});
  CHECK(pool.stats().used == 0);
}

TEST_CASE("adaptors: need an upstream, and pass on what they do not change") {
  Device& device = fresh_device();
  CHECK_THROWS_AS(TrackingAdaptor(nullptr), InvalidArgument);
  CHECK_THROWS_AS(LimitingAdaptor(nullptr, 1), InvalidArgument);
  CHECK_THROWS_AS(LimitingAdaptor(std::make_shared<DeviceResource>(device), 0), InvalidArgument);
  const auto pool = std::make_shared<PoolResource>(std::make_shared<DeviceResource>(device));
  TrackingAdaptor tracked(pool);
  CHECK(&tracked.device() == &device);
  tracked.deallocate(tracked.allocate(100, {}), 100, {});
  CHECK(tracked.stats().cached == pool->stats().cached);
  tracked.set_limit(8 << 20);
  CHECK(pool->stats().limit == 8 << 20);
  CHECK(tracked.trim() == 2 << 20);
}

TEST_CASE("holders by size") {
  std::vector<AllocationRecord> records;
  for (int line = 1; line <= 4; ++line) {
    for (int i = 0; i < line; ++i) records.push_back({0, 512, 0, 0, LaunchSite::here("a", line)});
  }
  CHECK(describe_holders(records, 2) ==
        "2 KiB in 4 allocations from a:4, 1.5 KiB in 3 allocations from a:3 and 2 more places");
  CHECK(describe_holders({}).empty());
}
