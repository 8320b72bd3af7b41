// Memory resources: allocation in stream order, errors with sizes, and the default of a device.
#include "memory/memory_resource.h"

#include "base/errors.h"
#include "core/device.h"
#include "memory/buffer.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

using namespace kernwright;
using testing::contains;
using testing::FakeDriver;
using testing::fresh_device;
using testing::message_of;

TEST_CASE("device resource: allocates, frees, and keeps nothing") {
  Device& device = fresh_device();
  DeviceResource resource(device);
  const CUdeviceptr address = resource.allocate(1000, {});
  CHECK(address % 256 == 0);
  CHECK(FakeDriver::get().live("memory") == 1);
  resource.deallocate(address, 1000, {});
  CHECK(FakeDriver::get().live("memory") == 0);
  CHECK(FakeDriver::get().calls("cuMemAllocAsync") == 0);
  CHECK(testing::fake_current_context() == nullptr);
}

TEST_CASE("async resource: uses the pool with a threshold set once, on the stream given") {
  Device& device = fresh_device();
  AsyncResource resource(device);
  CHECK(FakeDriver::get().calls("cuMemPoolSetAttribute") == 1);
  const Stream stream = Stream::create(device);
  const CUdeviceptr first = resource.allocate(64, stream);
  const CUdeviceptr second = resource.allocate(64, {});
  CHECK(first != second);
  resource.deallocate(first, 64, stream);
  resource.deallocate(second, 64, {});
  CHECK(FakeDriver::get().live("memory") == 0);
  CHECK(FakeDriver::get().calls("cuMemPoolSetAttribute") == 1);
  CHECK(FakeDriver::get().calls("cuMemAlloc") == 0);
  resource.trim();
  CHECK(FakeDriver::get().calls("cuMemPoolTrimTo") == 1);
}

TEST_CASE("async resource: without pools it allocates plainly") {
  Device& device = fresh_device();
  FakeDriver::get().attributes[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 0;
  AsyncResource resource(device);
  const CUdeviceptr address = resource.allocate(64, {});
  resource.deallocate(address, 64, {});
  CHECK(FakeDriver::get().calls("cuMemAlloc") == 1);
  CHECK(FakeDriver::get().calls("cuMemFree") == 1);
  CHECK(FakeDriver::get().calls("cuMemAllocAsync") == 0);
  resource.trim();
  CHECK(FakeDriver::get().calls("cuMemPoolTrimTo") == 0);
}

TEST_CASE("out of memory: requested, used, reserved and free are told, and nothing is kept") {
  Device& device = fresh_device();
  FakeDriver::get().total_memory = 1 << 20;
  AsyncResource pool(device);
  DeviceResource plain(device);
  const CUdeviceptr kept = pool.allocate(1000, {});
  for (MemoryResource* resource :
       {static_cast<MemoryResource*>(&pool), static_cast<MemoryResource*>(&plain)}) {
    try {
      resource->allocate(1 << 20, {});
      FAIL("nothing was thrown");
    } catch (const OutOfMemory& error) {
      CHECK(error.requested == 1 << 20);
      CHECK(error.used == 1000);
      CHECK(error.reserved == 1000);
      CHECK(error.free == (1 << 20) - 1000);
      CHECK(contains(error.what(), "no memory for 1048576 bytes"));
      CHECK(contains(error.what(), "cuda:0 (Fake GPU)"));
    }
  }
  CHECK(FakeDriver::get().live("memory") == 1);
  pool.deallocate(kept, 1000, {});
  CHECK_FALSE(device.lost());
}

TEST_CASE("out of memory: the pool is trimmed and the allocation tried once more") {
  Device& device = fresh_device();
  AsyncResource resource(device);
  FakeDriver::get().fail("cuMemAllocAsync", CUDA_ERROR_OUT_OF_MEMORY);
  const CUdeviceptr address = resource.allocate(64, {});
  CHECK(FakeDriver::get().calls("cuMemPoolTrimTo") == 1);
  CHECK(FakeDriver::get().calls("cuMemAllocAsync") == 2);
  resource.deallocate(address, 64, {});
  FakeDriver::get().fail("cuMemAllocAsync", CUDA_ERROR_OUT_OF_MEMORY, 2);
  CHECK_THROWS_AS(resource.allocate(64, {}), OutOfMemory);
  FakeDriver::get().fail("cuMemAllocAsync", CUDA_ERROR_INVALID_VALUE);
  CHECK(contains(message_of<DriverError>([&] { resource.allocate(64, {}); }), "64 bytes"));
}

TEST_CASE("resources: refuse streams of another device, and only log what cannot be freed") {
  auto& registry = testing::fake_registry();
  Device& device = registry.by_index(0);
  const Stream other = Stream::legacy(registry.by_index(1));
  DeviceResource plain(device);
  AsyncResource pool(device);
  CHECK_THROWS_AS(plain.allocate(1, other), InvalidArgument);
  CHECK_THROWS_AS(pool.allocate(1, other), InvalidArgument);
  testing::LogLines log;
  plain.deallocate(0x123, 1, {});
  pool.deallocate(0x123, 1, {});
  CHECK(log.lines.size() == 2);
}

TEST_CASE("default resource: one per device, replaced and given back") {
  auto& registry = testing::fake_registry();
  Device& device = registry.by_index(0);
  const auto first = default_resource(device);
  CHECK(default_resource(device) == first);
  CHECK(&first->device() == &device);
  CHECK(default_resource(registry.by_index(1)) != first);

  const auto plain = std::make_shared<DeviceResource>(device);
  CHECK(set_default_resource(device, plain) == first);
  CHECK(default_resource(device) == plain);
  CHECK_THROWS_AS(set_default_resource(registry.by_index(1), plain), InvalidArgument);
  CHECK(set_default_resource(device, nullptr) == plain);
  CHECK(default_resource(device) == first);
}
