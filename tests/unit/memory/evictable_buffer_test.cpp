// Evictable buffers: content comes back bit for bit, and leaves in the right order.
#include "memory/evictable_buffer.h"

#include "base/errors.h"
#include "core/device.h"
#include "memory/pool/pool_resource.h"
#include "memory/transfer.h"
#include "unit/core/fake_driver.h"
#include "unit/memory/memory_fixture.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

using namespace kernwright;
using testing::Bytes;
using testing::FakeDriver;
using testing::fresh_device;
using testing::kMiB;
using testing::pool_of;

namespace {

Bytes pattern(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  Bytes values(bytes);
  for (unsigned char& value : values) value = static_cast<unsigned char>(random());
  return values;
}

void write(Device& device, EvictableBuffer& buffer, const Bytes& values) {
  const auto pin = buffer.pin();
  copy_to_device(device, pin.address(), values.data(), values.size());
}

Bytes read(Device& device, EvictableBuffer& buffer) {
  const auto pin = buffer.pin();
  Bytes values(buffer.bytes());
  copy_to_host(device, values.data(), pin.address(), values.size());
  return values;
}

}  // namespace

TEST_CASE("evictable buffer: goes to the host and comes back bit for bit") {
  Device& device = fresh_device();
  const auto pool = pool_of(device);
  EvictableBuffer buffer(pool, 100001, Stream::create(device));
  const Bytes values = pattern(100001, 1);
  write(device, buffer, values);
  CHECK(buffer.is_resident());
  CHECK(buffer.evict());
  CHECK_FALSE(buffer.is_resident());
  CHECK_FALSE(buffer.evict());
  CHECK(pool->stats().used == 0);
  CHECK(pool->stats().evictions == 1);
  CHECK(read(device, buffer) == values);
  CHECK(buffer.is_resident());
  CHECK(pool->stats().used == 100001);
}

TEST_CASE("evictable buffer: a pinned one stays, and a pin may outlive its buffer") {
  Device& device = fresh_device();
  const auto pool = pool_of(device);
  auto buffer = std::make_unique<EvictableBuffer>(pool, 4096);
  EvictableBuffer::Pin outer = buffer->pin();
  {
    const EvictableBuffer::Pin inner = buffer->pin();
    CHECK(inner.address() == outer.address());
  }
  CHECK(buffer->is_pinned());
  CHECK_FALSE(buffer->evict());
  buffer.reset();
  CHECK(outer.address() != 0);
  CHECK(pool->stats().used == 4096);
  outer = {};
  CHECK(pool->stats().used == 0);
  EvictableBuffer empty(pool, 0);
  CHECK_FALSE(empty.evict());
  CHECK(empty.pin().address() == 0);
  CHECK_THROWS_AS(EvictableBuffer(nullptr, 1), InvalidArgument);
}

TEST_CASE("evictable buffer: an allocation without memory moves the least recently used away") {
  Device& device = fresh_device();
  FakeDriver::get().total_memory = 64 * kMiB;
  const auto pool = pool_of(device);
  std::vector<std::unique_ptr<EvictableBuffer>> buffers;
  for (unsigned i = 0; i < 6; ++i) {
    buffers.push_back(std::make_unique<EvictableBuffer>(pool, 10 * kMiB));
    write(device, *buffers.back(), pattern(10 * kMiB, i));
  }
  buffers[0]->pin();                        // used last
  const auto pinned = buffers[2]->pin();    // in use
  const Buffer large(pool, 20 * kMiB, {});  // 1 and 3 are the oldest
  const std::vector<bool> resident{true, false, true, false, true, true};
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    CHECK(buffers[i]->is_resident() == resident[i]);
  }
  CHECK(pool->stats().evictions == 2);
  // Bringing one back moves the next one away.
  CHECK(read(device, *buffers[1]) == pattern(10 * kMiB, 1));
  CHECK_FALSE(buffers[4]->is_resident());
  for (unsigned i = 0; i < 6; ++i) CHECK(read(device, *buffers[i]) == pattern(10 * kMiB, i));
  CHECK(pinned.address() != 0);
}

TEST_CASE("evictable buffer: makes room below a limit, and for another pool of the device") {
  Device& device = fresh_device();
  FakeDriver::get().total_memory = 64 * kMiB;
  const auto pool = pool_of(device);
  pool->set_limit(20 * kMiB);
  EvictableBuffer first(pool, 16 * kMiB);
  write(device, first, pattern(16 * kMiB, 9));
  SUBCASE("limit") {
    const Buffer second(pool, 16 * kMiB, {});
    CHECK_FALSE(first.is_resident());
    CHECK_THROWS_AS(first.pin(), OutOfMemory);
    CHECK_FALSE(first.is_resident());
  }
  SUBCASE("the driver, without a pool") {
    const Buffer second(std::make_shared<AsyncResource>(device), 60 * kMiB, {});
    CHECK_FALSE(first.is_resident());
  }
  SUBCASE("another pool") {
    const Buffer second(pool_of(device), 60 * kMiB, {});
    CHECK_FALSE(first.is_resident());
  }
  CHECK(read(device, first) == pattern(16 * kMiB, 9));
}

TEST_CASE("evictable buffer: waits for every stream that used it, and survives a failing copy") {
  Device& device = fresh_device();
  const auto pool = pool_of(device);
  EvictableBuffer buffer(pool, 1000, Stream::create(device));
  const Stream user = Stream::create(device);
  buffer.pin().buffer()->use_on(user);
  FakeDriver& driver = FakeDriver::get();
  const int waits = driver.calls("cuStreamWaitEvent");
  driver.fail("cuMemcpyDtoHAsync", CUDA_ERROR_INVALID_VALUE);
  CHECK_THROWS_AS(buffer.evict(), DriverError);
  CHECK(buffer.is_resident());
  CHECK(buffer.evict());
  CHECK(driver.calls("cuStreamWaitEvent") > waits);
  driver.fail("cuMemcpyHtoDAsync", CUDA_ERROR_INVALID_VALUE);
  CHECK_THROWS_AS(buffer.pin(), DriverError);
  CHECK_FALSE(buffer.is_resident());
  CHECK_FALSE(buffer.is_pinned());
  CHECK(pool->stats().used == 0);
  CHECK(buffer.pin().address() != 0);
}

TEST_CASE("evictable buffer: threads that use more than there is get their own bytes") {
  Device& device = fresh_device();
  FakeDriver::get().total_memory = 8 * kMiB;
  PoolResource::Options options;
  options.smallest_segment = 256 << 10;
  const auto pool =
      std::make_shared<PoolResource>(std::make_shared<DeviceResource>(device), options);
  std::vector<std::unique_ptr<EvictableBuffer>> buffers;
  for (unsigned i = 0; i < 24; ++i) {
    buffers.push_back(std::make_unique<EvictableBuffer>(pool, kMiB / 2));
    write(device, *buffers.back(), pattern(kMiB / 2, i));
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 60; ++i) {
        const unsigned which = random() % 24;
        if (read(device, *buffers[which]) != pattern(kMiB / 2, which)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(pool->stats().evictions > 0);
}

TEST_CASE(
    "evictable buffer: best effort goes first, then burstable over its request, then nothing") {
  Device& device = fresh_device();
  FakeDriver::get().total_memory = 64 * kMiB;
  const auto pool = pool_of(device);
  const auto best = std::make_shared<EvictionGroup>(EvictionClass::best_effort);
  const auto burst = std::make_shared<EvictionGroup>(EvictionClass::burstable, 10 * kMiB);
  const auto sure = std::make_shared<EvictionGroup>(EvictionClass::guaranteed);
  std::vector<std::unique_ptr<EvictableBuffer>> buffers;
  unsigned seed = 0;
  for (const auto& group : {sure, burst, burst, best, sure}) {
    buffers.push_back(
        std::make_unique<EvictableBuffer>(pool, 10 * kMiB, Stream(), LaunchSite::here(), group));
    write(device, *buffers.back(), pattern(10 * kMiB, seed++));
  }
  CHECK(burst->resident() == 20 * kMiB);
  const auto residents = [&] {
    std::vector<bool> list;
    for (const auto& buffer : buffers) list.push_back(buffer->is_resident());
    return list;
  };
  std::vector<Buffer> pressure;
  pressure.emplace_back(pool, 10 * kMiB, Stream());
  CHECK(residents() == std::vector<bool>{true, true, true, true, true});
  pressure.emplace_back(pool, 10 * kMiB, Stream());  // the newest, but best effort
  CHECK(residents() == std::vector<bool>{true, true, true, false, true});
  pressure.emplace_back(pool, 10 * kMiB, Stream());  // the older of the burstable
  CHECK(residents() == std::vector<bool>{true, false, true, false, true});
  CHECK(burst->resident() == 10 * kMiB);
  // The rest is within its request, or guaranteed.
  CHECK_THROWS_AS(pressure.emplace_back(pool, 10 * kMiB, Stream()), OutOfMemory);
  CHECK(residents() == std::vector<bool>{true, false, true, false, true});
  burst->set_request(0);
  pressure.emplace_back(pool, 10 * kMiB, Stream());
  CHECK(residents() == std::vector<bool>{true, false, false, false, true});
  sure->set_class(EvictionClass::best_effort);
  pressure.emplace_back(pool, 20 * kMiB, Stream());
  CHECK(residents() == std::vector<bool>(5, false));
  CHECK(sure->resident() + burst->resident() + best->resident() == 0);
  pressure.clear();
  for (unsigned i = 0; i < 5; ++i) CHECK(read(device, *buffers[i]) == pattern(10 * kMiB, i));
  CHECK(sure->resident() == 20 * kMiB);
  buffers.clear();
  CHECK(sure->resident() + burst->resident() + best->resident() == 0);
}

TEST_CASE("evictable buffer: what came back just before goes after older content") {
  Device& device = fresh_device();
  FakeDriver::get().total_memory = 32 * kMiB;
  const auto pool = pool_of(device);
  const auto make = [&](unsigned seed) {
    auto buffer = std::make_unique<EvictableBuffer>(pool, 10 * kMiB);
    write(device, *buffer, pattern(10 * kMiB, seed));
    return buffer;
  };
  const auto a = make(1), b = make(2), c = make(3);
  { const Buffer pressure(pool, 10 * kMiB, {}); }
  CHECK_FALSE(a->is_resident());
  a->pin();  // comes back
  b->pin();
  c->pin();  // a is the least recently used again
  {
    const Buffer pressure(pool, 10 * kMiB, {});
    CHECK(a->is_resident());
    CHECK_FALSE(b->is_resident());
  }
  for (unsigned i = 0; i < 3; ++i) {
    CHECK(read(device, i == 0 ? *a : i == 1 ? *b : *c) == pattern(10 * kMiB, i + 1));
  }
}
