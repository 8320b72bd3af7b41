// Buffers: ownership, moves, order of freeing, threads.
#include "memory/buffer.h"

#include "base/errors.h"
#include "core/device.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"
#include "unit/memory/memory_fixture.h"

#include <doctest/doctest.h>

#include <limits>
#include <thread>
#include <vector>

using namespace kernwright;
using testing::FakeDriver;
using testing::fresh_device;

namespace {

Buffer make(Device& device, std::size_t bytes, const Stream& stream = {}) {
  return Buffer(std::make_shared<AsyncResource>(device), bytes, stream);
}

}  // namespace

TEST_CASE("buffer: frees once, moves without copying, survives self-assignment") {
  Device& device = fresh_device();
  {
    Buffer a = make(device, 100);
    const CUdeviceptr address = a.address();
    CHECK(address != 0);
    CHECK(a.bytes() == 100);
    CHECK(&a.device() == &device);
    Buffer b = std::move(a);
    CHECK(b.address() == address);
    CHECK(a.address() == 0);
    CHECK(a.bytes() == 0);
    Buffer c = make(device, 50);
    c = std::move(b);
    CHECK(c.address() == address);
    CHECK(FakeDriver::get().live("memory") == 1);
    Buffer& same = c;
    c = std::move(same);
    CHECK(c.address() == address);
  }
  CHECK(FakeDriver::get().live("memory") == 0);
  CHECK(FakeDriver::get().calls("cuMemFreeAsync") == 2);
}

TEST_CASE("buffer: zero bytes need no memory, too many are refused before the driver") {
  Device& device = fresh_device();
  Buffer empty = make(device, 0);
  CHECK(empty.address() == 0);
  CHECK(empty.bytes() == 0);
  empty.use_on(Stream::create(device));
  CHECK_THROWS_AS(make(device, std::numeric_limits<std::size_t>::max()), InvalidArgument);
  CHECK(FakeDriver::get().calls("cuMemAllocAsync") == 0);
  CHECK_THROWS_AS(make(device, std::size_t{1} << 62), OutOfMemory);
}

TEST_CASE("buffer: ten thousand cycles leave memory as it was") {
  Device& device = fresh_device();
  const std::uint64_t free = device.memory_info().free;
  for (int i = 0; i < 10000; ++i) {
    const Buffer buffer = make(device, 1 + static_cast<std::size_t>(i) * 7 % 5000);
    REQUIRE(buffer.address() != 0);
  }
  CHECK(device.memory_info().free == free);
  CHECK(FakeDriver::get().live("memory") == 0);
}

TEST_CASE("buffer: freed after the work of every stream that used it") {
  Device& device = fresh_device();
  const Stream owner = Stream::create(device);
  const Stream user = Stream::create(device);
  const Stream foreign = Stream::borrow(device, reinterpret_cast<CUstream>(0x5150));
  {
    Buffer buffer = make(device, 64, owner);
    buffer.use_on(owner);
    CHECK(FakeDriver::get().calls("cuEventRecord") == 0);
    // An own stream is queried when the memory is freed; one that may vanish, now.
    buffer.use_on(user);
    buffer.use_on(user);
    CHECK(FakeDriver::get().calls("cuEventRecord") == 0);
    buffer.use_on(foreign);
    buffer.use_on(foreign);
    CHECK(FakeDriver::get().calls("cuEventRecord") == 2);
    CHECK(FakeDriver::get().calls("cuEventCreate") == 1);
    CHECK(FakeDriver::get().calls("cuStreamWaitEvent") == 0);
  }
  CHECK(FakeDriver::get().calls("cuStreamWaitEvent") == 2);
  CHECK(FakeDriver::get().calls("cuEventRecord") == 3);
  CHECK(FakeDriver::get().live("memory") == 0);
  CHECK(FakeDriver::get().live("event") == 0);
}

TEST_CASE("buffer: memory whose users cannot be waited for is leaked, with a line in the log") {
  Device& device = fresh_device();
  testing::LogLines log;
  int left = 0;
  {
    Buffer buffer = make(device, 64);
    buffer.use_on(Stream::create(device));
    FakeDriver::get().fail("cuStreamWaitEvent", CUDA_ERROR_INVALID_VALUE);
    SUBCASE("not by the stream, but by the host") { left = 0; }
    SUBCASE("by nobody") {
      left = 1;
      FakeDriver::get().fail("cuStreamSynchronize", CUDA_ERROR_INVALID_VALUE);
    }
  }
  CHECK(FakeDriver::get().live("memory") == left);
  REQUIRE(log.lines.size() == 1);
  CHECK(testing::contains(log.lines[0], "buffer of 64 bytes"));
  FakeDriver::get().reset();
}

TEST_CASE("buffer: frees at once what a pool takes back without a word to the driver") {
  Device& device = fresh_device();
  const auto pool = testing::pool_of(device);
  const Stream user = Stream::create(device);
  Buffer first(pool, 4096, {});
  const CUdeviceptr address = first.address();
  CHECK_FALSE(first.try_release());  // the first free of a stream is noted
  CHECK(first.address() == address);
  first = Buffer();
  CHECK(pool->stats().used == 0);

  Buffer second(pool, 4096, {});
  CHECK(second.address() == address);
  CHECK(second.try_release());
  CHECK(second.address() == 0);
  CHECK(second.bytes() == 0);
  CHECK(pool->stats().used == 0);
  CHECK(pool->stats().frees == 2);
  CHECK_FALSE(second.try_release());  // it is empty

  Buffer third(pool, 4096, {});
  CHECK(third.address() == address);
  SUBCASE("another stream uses it") {
    third.use_on(user);
    CHECK_FALSE(third.try_release());
  }
  SUBCASE("the stream and the pool might end with it") {
    Buffer on_stream(pool, 4096, user);
    CHECK_FALSE(on_stream.try_release());
    Buffer alone(testing::pool_of(device), 4096, {});
    CHECK_FALSE(alone.try_release());
  }
  SUBCASE("a resource that asks the driver") {
    Buffer unpooled = testing::unpooled_buffer(device, 4096);
    CHECK_FALSE(unpooled.try_release());
  }
  SUBCASE("while activity is recorded") {
    const auto recording = ActivityRecording::begin();
    CHECK_FALSE(third.try_release());
    recording->end();
  }
  CHECK(pool->stats().used != 0);
}

TEST_CASE("buffer: may be made, used and freed on different threads") {
  Device& device = fresh_device();
  const auto resource = std::make_shared<AsyncResource>(device);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Buffer local;
      for (int i = 0; i < 500; ++i) {
        Buffer buffer(resource, 128, {});
        buffer.use_on(Stream::legacy(device));
        local = std::move(buffer);
      }
      std::thread([moved = std::move(local)] {}).join();
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(FakeDriver::get().live("memory") == 0);
}

TEST_CASE("buffer: the legacy streams of two devices are two streams") {
  DeviceRegistry& registry = testing::fake_registry();
  Device& home = registry.by_index(0);
  Device& far = registry.by_index(1);
  FakeDriver& driver = FakeDriver::get();
  const auto resource = std::make_shared<DeviceResource>(home);
  {
    Buffer buffer(resource, 64, {});
    buffer.use_on(Stream::legacy(home));
    buffer.use_on({});
  }
  CHECK(driver.calls("cuStreamWaitEvent") == 0);
  {
    Buffer buffer(resource, 64, {});
    buffer.use_on(Stream::legacy(far));
  }
  CHECK(driver.calls("cuStreamWaitEvent") == 1);
}
