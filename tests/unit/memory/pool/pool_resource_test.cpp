// The pool: reuse in stream order, growth and return of segments, limits, errors, accounts.
#include "memory/pool/pool_resource.h"

#include "base/errors.h"
#include "core/device.h"
#include "memory/allocation_site.h"
#include "memory/buffer.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"
#include "unit/memory/memory_fixture.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

using namespace kernwright;
using testing::contains;
using testing::FakeDriver;
using testing::fresh_device;
using testing::kMiB;
using testing::message_of;

namespace {

std::shared_ptr<PoolResource> make_pool(Device& device, PoolResource::Options options = {}) {
  return std::make_shared<PoolResource>(std::make_shared<DeviceResource>(device), options);
}

int driver_allocs() { return FakeDriver::get().calls("cuMemAlloc"); }

void require_balance(const MemoryStats& stats) {
  REQUIRE(stats.used + stats.padding + stats.cached == stats.reserved);
  REQUIRE(stats.hits + stats.misses == stats.allocations);
  REQUIRE(stats.blocks == stats.allocations - stats.frees);
}

}  // namespace

TEST_CASE("pool: the second allocation of a size asks nobody") {
  Device& device = fresh_device();
  const auto pool = make_pool(device);
  const CUdeviceptr first = pool->allocate(4 * kMiB, {});
  CHECK(first % 256 == 0);
  pool->deallocate(first, 4 * kMiB, {});
  FakeDriver& driver = FakeDriver::get();
  const int queries = driver.calls("cuCtxGetCurrent");
  for (int i = 0; i < 1000; ++i) {
    const CUdeviceptr again = pool->allocate(4 * kMiB, {});
    REQUIRE(again == first);
    pool->deallocate(again, 4 * kMiB, {});
  }
  CHECK(driver_allocs() == 1);
  CHECK(driver.calls("cuCtxGetCurrent") == queries);
  const MemoryStats stats = pool->stats();
  require_balance(stats);
  CHECK(stats.hits == 1000);
  CHECK(stats.misses == 1);
  CHECK(stats.used == 0);
  CHECK(stats.used_peak == 4 * kMiB);
  CHECK(stats.reserved == 4 * kMiB);
  CHECK(stats.driver_allocs == 1);
}

TEST_CASE("pool: small blocks share a segment, and requests are padded to their class") {
  const auto pool = make_pool(fresh_device());
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(pool->allocate(1000, {}));
  CHECK(driver_allocs() == 1);
  CHECK(pool->stats().padding == 100 * 24);
  CHECK(pool->stats().segments == 1);
  require_balance(pool->stats());
  for (const CUdeviceptr block : blocks) pool->deallocate(block, 1000, {});
  CHECK(pool->trim() == 2 * kMiB);
  CHECK(FakeDriver::get().live("memory") == 0);
  CHECK(pool->stats().reserved == 0);
  CHECK(pool->stats().driver_frees == 1);
}

TEST_CASE("pool: memory of an idle stream is everybody's, memory of a busy one waits by an event") {
  Device& device = fresh_device();
  PoolResource::Options options;
  options.slack = 0;
  options.overhead = 1;
  const auto pool = make_pool(device, options);
  const Stream first = Stream::create(device);
  const Stream second = Stream::create(device);
  const CUdeviceptr block = pool->allocate(2 * kMiB, first);
  pool->deallocate(block, 2 * kMiB, first);
  FakeDriver& driver = FakeDriver::get();
  SUBCASE("idle") {
    CHECK(pool->allocate(2 * kMiB, second) == block);
    CHECK(driver.calls("cuStreamQuery") == 1);
    CHECK(driver.calls("cuStreamWaitEvent") == 0);
    CHECK(pool->stats().stream_waits == 0);
  }
  SUBCASE("busy") {
    driver.fail("cuStreamQuery", CUDA_ERROR_NOT_READY, 100);
    CHECK(pool->allocate(2 * kMiB, second) == block);
    CHECK(driver.calls("cuEventRecord") == 1);
    CHECK(driver.calls("cuStreamWaitEvent") == 1);
    CHECK(pool->stats().stream_waits == 1);
    driver.reset();
  }
  CHECK(driver_allocs() <= 1);
  require_balance(pool->stats());
}

TEST_CASE("pool: a busy stream keeps its memory while there is room to grow") {
  Device& device = fresh_device();
  const auto pool = make_pool(device);
  const Stream first = Stream::create(device);
  const CUdeviceptr block = pool->allocate(2 * kMiB, first);
  pool->deallocate(block, 2 * kMiB, first);
  FakeDriver::get().fail("cuStreamQuery", CUDA_ERROR_NOT_READY, 100);
  const CUdeviceptr other = pool->allocate(2 * kMiB, Stream::create(device));
  CHECK(other != block);
  CHECK(FakeDriver::get().calls("cuStreamWaitEvent") == 0);
  CHECK(pool->allocate(2 * kMiB, first) == block);
}

TEST_CASE("pool: a borrowed stream is marked when memory is freed on it, and never asked later") {
  Device& device = fresh_device();
  PoolResource::Options options;
  options.slack = 0;
  options.overhead = 1;
  const auto pool = make_pool(device, options);
  FakeDriver& driver = FakeDriver::get();
  const CUstream handle = reinterpret_cast<CUstream>(0x5150);
  CUdeviceptr block = 0;
  {
    const Stream borrowed = Stream::borrow(device, handle);
    block = pool->allocate(2 * kMiB, borrowed);
    pool->deallocate(block, 2 * kMiB, borrowed);
    CHECK(driver.calls("cuEventRecord") == 1);
    CHECK(pool->allocate(2 * kMiB, borrowed) == block);
    CHECK_THROWS_AS(pool->release(block + 256, 1, borrowed), InvalidArgument);
    pool->deallocate(block, 2 * kMiB, borrowed);
    CHECK_THROWS_AS(pool->release(block, 2 * kMiB, borrowed), InvalidArgument);
  }
  const int queries = driver.calls("cuStreamQuery");
  SUBCASE("its work is done") { CHECK(pool->allocate(2 * kMiB, {}) == block); }
  SUBCASE("its work is not done") {
    driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 100);
    CHECK(pool->allocate(2 * kMiB, {}) == block);
    CHECK(driver.calls("cuStreamWaitEvent") == 1);
    driver.reset();
  }
  SUBCASE("the same handle is another stream by now") {
    driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1);
    CHECK(pool->allocate(2 * kMiB, Stream::borrow(device, handle)) == block);
    CHECK(driver.calls("cuStreamWaitEvent") == 1);
  }
  CHECK(driver.calls("cuStreamQuery") <= queries);
}

TEST_CASE("pool: the per-thread stream shares nothing without an event") {
  Device& device = fresh_device();
  const auto pool = make_pool(device);
  const Stream stream = Stream::borrow(device, kStreamPerThread);
  const CUdeviceptr first = pool->allocate(kMiB, stream);
  const CUdeviceptr second = pool->allocate(kMiB, stream);
  pool->deallocate(first, kMiB, stream);
  pool->deallocate(second, kMiB, stream);
  CHECK(FakeDriver::get().calls("cuEventRecord") == 2);
  FakeDriver::get().fail("cuEventQuery", CUDA_ERROR_NOT_READY, 2);
  const CUdeviceptr third = pool->allocate(kMiB, stream);
  CHECK(third != first);
  CHECK(third != second);
}

TEST_CASE("pool: few streams are kept alive for the memory that was freed on them") {
  Device& device = fresh_device();
  const auto pool = make_pool(device);
  for (int i = 0; i < 500; ++i) {
    const Stream stream = Stream::create(device);
    const CUdeviceptr block = pool->allocate(1000, stream);
    pool->deallocate(block, 1000, stream);
  }
  CHECK(FakeDriver::get().live("stream") < 40);
  CHECK(driver_allocs() == 1);
  pool->trim();
  CHECK(FakeDriver::get().live("stream") == 0);
  CHECK(FakeDriver::get().live("memory") == 0);
}

TEST_CASE(
    "pool: double free, foreign address, wrong size and device are found and change nothing") {
  auto& registry = testing::fake_registry();
  Device& device = registry.by_index(0);
  const auto pool = make_pool(device);
  const CUdeviceptr block = pool->allocate(1000, {});
  const CUdeviceptr other = pool->allocate(5000, {});
  const auto refused = [&](CUdeviceptr address, std::size_t bytes) {
    return message_of<InvalidArgument>([&] { pool->release(address, bytes, {}); });
  };
  CHECK(contains(refused(block, 1001), "1000 were allocated"));
  CHECK(contains(refused(block + 256, 1000), "no memory of this pool starts"));
  CHECK(contains(refused(0x1234, 1), "no memory of this pool starts"));
  CHECK_THROWS_AS(pool->release(block, 1000, Stream::legacy(registry.by_index(1))),
                  InvalidArgument);
  CHECK(pool->stats().blocks == 2);
  pool->release(block, 1000, {});
  CHECK(contains(refused(block, 1000), "freed already"));
  testing::LogLines log;
  pool->deallocate(block, 1000, {});
  pool->deallocate(0x1234, 1, {});
  CHECK(log.lines.size() == 2);
  CHECK(pool->stats().refused_frees == 6);
  CHECK(pool->stats().used == 5000);
  CHECK(pool->allocate(1000, {}) == block);
  pool->deallocate(block, 1000, {});
  pool->deallocate(other, 5000, {});
  require_balance(pool->stats());
}

TEST_CASE("pool: sizes that cannot be") {
  auto& registry = testing::fake_registry();
  Device& device = registry.by_index(0);
  const auto pool = make_pool(device);
  CHECK_THROWS_AS(pool->allocate(0, {}), InvalidArgument);
  CHECK_THROWS_AS(pool->allocate(std::numeric_limits<std::size_t>::max(), {}), InvalidArgument);
  CHECK_THROWS_AS(pool->allocate(std::size_t{1} << 62, {}), OutOfMemory);
  CHECK_THROWS_AS(pool->allocate(1, Stream::legacy(registry.by_index(1))), InvalidArgument);
  CHECK_THROWS_AS(PoolResource(nullptr), InvalidArgument);
  PoolResource::Options odd;
  odd.smallest_segment = 100;
  CHECK_THROWS_AS(make_pool(device, odd), InvalidArgument);
  odd = {};
  odd.overhead = 0.5;
  CHECK_THROWS_AS(make_pool(device, odd), InvalidArgument);
  CHECK(pool->stats().failures == 1);
  CHECK(pool->stats().allocations == 0);
}

TEST_CASE("pool: out of memory gives the caches back and tries again, also those of other pools") {
  Device& device = fresh_device();
  FakeDriver::get().total_memory = 64 * kMiB;
  const auto pool = make_pool(device);
  const auto other = make_pool(device);
  other->deallocate(other->allocate(20 * kMiB, {}), 20 * kMiB, {});
  std::vector<CUdeviceptr> pieces;
  for (int i = 0; i < 10; ++i) pieces.push_back(pool->allocate(3 * kMiB, {}));
  for (const CUdeviceptr piece : pieces) pool->deallocate(piece, 3 * kMiB, {});
  const CUdeviceptr large = pool->allocate(60 * kMiB, {});
  CHECK(large != 0);
  CHECK(other->stats().reserved == 0);
  CHECK(pool->stats().misses >= 2);
  pool->deallocate(large, 60 * kMiB, {});
  require_balance(pool->stats());
}

TEST_CASE("pool: out of memory tells requested, used, reserved, free, and who holds what") {
  Device& device = fresh_device();
  FakeDriver::get().total_memory = 16 * kMiB;
  const auto pool = make_pool(device);
  const int line = __LINE__ + 1;
  const Buffer kept(pool, 3 * kMiB, {});
  const CUdeviceptr unnamed = pool->allocate(1000, {});
  try {
    pool->allocate(32 * kMiB, {});
    FAIL("nothing was thrown");
  } catch (const OutOfMemory& error) {
    CHECK(error.requested == 32 * kMiB);
    CHECK(error.used == 3 * kMiB + 1000);
    CHECK(error.reserved == pool->stats().reserved);
    CHECK(error.free == 16 * kMiB - pool->stats().reserved);
    CHECK(contains(error.what(), "3 MiB in 1 allocation from"));
    CHECK(contains(error.what(), "pool_resource_test.cpp:" + std::to_string(line)));
    CHECK(contains(error.what(), "1000 B in 1 allocation from an unknown place"));
  }
  CHECK(pool->stats().failures == 1);
  pool->deallocate(unnamed, 1000, {});
  CHECK(pool->allocate(1000, {}) == unnamed);
  pool->deallocate(unnamed, 1000, {});
}

TEST_CASE("pool: other errors of the driver pass as they are") {
  const auto pool = make_pool(fresh_device());
  FakeDriver::get().fail("cuMemAlloc", CUDA_ERROR_INVALID_VALUE);
  CHECK_THROWS_AS(pool->allocate(64, {}), DriverError);
  CHECK(pool->stats().reserved == 0);
  FakeDriver::get().fail("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);  // passing: the second try works
  const CUdeviceptr block = pool->allocate(64, {});
  pool->deallocate(block, 64, {});
  require_balance(pool->stats());
}

TEST_CASE("pool: a limit on what is reserved") {
  const auto pool = make_pool(fresh_device());
  const CUdeviceptr block = pool->allocate(kMiB, {});
  CHECK_THROWS_AS(pool->set_limit(1000), InvalidArgument);
  CHECK(pool->stats().limit == 0);
  pool->set_limit(3 * kMiB);
  CHECK(pool->stats().limit == 3 * kMiB);
  const std::string message = message_of<OutOfMemory>([&] { pool->allocate(5 * kMiB, {}); });
  CHECK(contains(message, "over the limit of 3145728 bytes"));
  // Less than a whole segment is left below the limit, and still serves.
  const CUdeviceptr second = pool->allocate(kMiB, {});
  const CUdeviceptr third = pool->allocate(kMiB, {});
  CHECK(pool->stats().reserved <= 3 * kMiB);
  for (const CUdeviceptr address : {block, second, third}) pool->deallocate(address, kMiB, {});
  pool->set_limit(kMiB);  // below the reserved bytes: the cache goes
  CHECK(pool->stats().reserved <= kMiB);
  CHECK_THROWS_AS(pool->allocate(2 * kMiB, {}), OutOfMemory);
  pool->set_limit(0);
  pool->deallocate(pool->allocate(2 * kMiB, {}), 2 * kMiB, {});
  require_balance(pool->stats());
}

TEST_CASE("pool: trim keeps what is asked for and what is in use") {
  const auto pool = make_pool(fresh_device());
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(pool->allocate(8 * kMiB, {}));
  for (int i = 1; i < 4; ++i) pool->deallocate(blocks[static_cast<std::size_t>(i)], 8 * kMiB, {});
  CHECK(pool->stats().reserved == 32 * kMiB);
  CHECK(pool->trim(20 * kMiB) == 16 * kMiB);
  CHECK(pool->stats().reserved == 16 * kMiB);
  CHECK(pool->trim() == 8 * kMiB);
  CHECK(pool->trim() == 0);
  CHECK(pool->stats().reserved == 8 * kMiB);
  pool->deallocate(blocks[0], 8 * kMiB, {});
}

TEST_CASE("pool: its end gives back what is free and names what is not") {
  Device& device = fresh_device();
  testing::LogLines log;
  {
    const auto pool = make_pool(device);
    pool->deallocate(pool->allocate(kMiB, {}), kMiB, {});
  }
  CHECK(FakeDriver::get().live("memory") == 0);
  CHECK(log.lines.empty());
  {
    const AllocationSiteScope scope(LaunchSite::here("leaky.cpp", 7));
    const auto pool = make_pool(device);
    pool->allocate(kMiB, {});
  }
  REQUIRE(log.lines.size() == 1);
  CHECK(contains(log.lines[0], "leaky.cpp:7"));
  FakeDriver::get().reset();
}

TEST_CASE("pool: a snapshot shows every byte") {
  Device& device = fresh_device();
  const auto pool = make_pool(device);
  const Stream stream = Stream::create(device);
  const CUdeviceptr a = pool->allocate(1000, stream);
  const CUdeviceptr b = pool->allocate(3 * kMiB, {});
  pool->deallocate(a, 1000, stream);
  const MemorySnapshot snapshot = pool->snapshot();
  CHECK(snapshot.resource == "PoolResource");
  CHECK(snapshot.segments.size() == 2);
  std::size_t used = 0, free = 0;
  for (const SnapshotSegment& segment : snapshot.segments) {
    std::uint64_t next = segment.address;
    for (const SnapshotBlock& block : segment.blocks) {
      CHECK(block.address == next);
      next += block.bytes;
      (block.state == "used" ? used : free) += block.bytes;
      if (block.address == a) CHECK(block.stream == stream.id());
    }
    CHECK(next == segment.address + segment.bytes);
  }
  CHECK(used == snapshot.stats.used + snapshot.stats.padding);
  CHECK(free == snapshot.stats.cached);
  CHECK(snapshot.history.size() >= 2);
  CHECK(snapshot.history.back().reserved == snapshot.stats.reserved);
  pool->deallocate(b, 3 * kMiB, {});
}
