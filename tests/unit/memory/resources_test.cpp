// One suite for every resource and adaptor, on the simulated device and on a GPU.
#include "base/errors.h"
#include "core/device.h"
#include "core/event.h"
#include "memory/buffer.h"
#include "memory/failing_adaptor.h"
#include "memory/limiting_adaptor.h"
#include "memory/managed_resource.h"
#include "memory/pinned_resource.h"
#include "memory/pool/pool_resource.h"
#include "memory/tracking_adaptor.h"
#include "unit/core/error_text.h"
#include "unit/core/test_device.h"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <thread>
#include <vector>

using namespace kernwright;
using Maker = std::function<std::shared_ptr<MemoryResource>(Device&)>;

namespace {

const std::map<std::string, Maker>& makers() {
  static const auto* const all = new std::map<std::string, Maker>{
      {"device", [](Device& d) { return std::make_shared<DeviceResource>(d); }},
      {"async", [](Device& d) { return std::make_shared<AsyncResource>(d); }},
      {"pinned", [](Device& d) { return std::make_shared<PinnedResource>(d); }},
      {"managed", [](Device& d) { return std::make_shared<ManagedResource>(d); }},
      {"pool",
       [](Device& d) {
         return std::make_shared<PoolResource>(std::make_shared<DeviceResource>(d));
       }},
      {"pool over async",
       [](Device& d) {
         return std::make_shared<PoolResource>(std::make_shared<AsyncResource>(d));
       }},
      {"pool over managed",
       [](Device& d) {
         return std::make_shared<PoolResource>(std::make_shared<ManagedResource>(d));
       }},
      {"limiting",
       [](Device& d) {
         return std::make_shared<LimitingAdaptor>(std::make_shared<AsyncResource>(d),
                                                  std::size_t{1} << 40);
       }},
      {"tracking",
       [](Device& d) {
         return std::make_shared<TrackingAdaptor>(
             std::make_shared<PoolResource>(std::make_shared<DeviceResource>(d)));
       }},
      {"failing never",
       [](Device& d) {
         return std::make_shared<FailingAdaptor>(std::make_shared<DeviceResource>(d), 0, 0);
       }},
  };
  return *all;
}

/// Runs `test` for each kind, with all its memory gone afterwards.
void for_each_resource(const std::function<void(MemoryResource&, Device&)>& test) {
  Device& device = testing::test_device();
  for (const auto& kind : makers()) {
    CAPTURE(kind.first);
    const auto resource = kind.second(device);
    test(*resource, device);
    CHECK(resource->stats().used == 0);
    CHECK(resource->stats().blocks == 0);
    CHECK(resource->records().empty());
    resource->trim();
  }
}

}  // namespace

TEST_CASE("every resource: memory that can be written and read, alive until it is freed") {
  for_each_resource([](MemoryResource& resource, Device& device) {
    const Stream stream = Stream::create(device);
    std::vector<CUdeviceptr> blocks;
    for (std::uint64_t i = 1; i <= 20; ++i) {
      const CUdeviceptr address = resource.allocate(i * 1000, stream);
      CHECK(address % 256 == 0);
      fill(device, address, i, 8, i * 125, stream);
      blocks.push_back(address);
    }
    for (std::uint64_t i = 1; i <= 20; ++i) {
      std::vector<std::uint64_t> values(i * 125);
      copy_to_host(device, values.data(), blocks[i - 1], i * 1000, stream);
      stream.synchronize();
      CHECK(values == std::vector<std::uint64_t>(i * 125, i));
    }
    CHECK(resource.stats().blocks == 20);
    CHECK(resource.stats().used == 210000);
    const auto records = resource.records();
    REQUIRE(records.size() == 20);
    CHECK(records[4].bytes == 5000);
    CHECK(records[4].address == blocks[4]);
    for (std::uint64_t i = 1; i <= 20; ++i) resource.deallocate(blocks[i - 1], i * 1000, stream);
  });
}

TEST_CASE("every resource: a history of its use, oldest first") {
  for_each_resource([](MemoryResource& resource, Device&) {
    CHECK(resource.history().size() <= 1);  // of now
    for (int i = 0; i < 200; ++i) resource.deallocate(resource.allocate(1000, {}), 1000, {});
    const CUdeviceptr address = resource.allocate(5000, {});
    const std::vector<HistorySample> samples = resource.history();
    REQUIRE(samples.size() >= 3);
    for (std::size_t i = 1; i < samples.size(); ++i) {
      CHECK(samples[i].operation >= samples[i - 1].operation);
      CHECK(samples[i].seconds >= samples[i - 1].seconds);
      CHECK(samples[i].used <= samples[i].reserved);
    }
    CHECK(samples.back().operation > 300);
    if (dynamic_cast<const DriverResource*>(&resource) != nullptr) {
      CHECK(samples.back().operation == 401);
      CHECK(samples.back().used == 5000);
      CHECK(samples[0].used == 1000);
      CHECK(samples[1].used == 0);
    }
    resource.deallocate(address, 5000, {});
  });
}

TEST_CASE("every resource: what cannot be allocated or freed is refused and changes nothing") {
  for_each_resource([](MemoryResource& resource, Device&) {
    CHECK_THROWS_AS(resource.allocate(0, {}), InvalidArgument);
    CHECK_THROWS_AS(resource.allocate(std::numeric_limits<std::size_t>::max(), {}),
                    InvalidArgument);
    try {
      resource.allocate(std::size_t{1} << 50, {});
      FAIL("2^50 bytes were allocated");
    } catch (const OutOfMemory& error) {
      CHECK(error.requested == std::size_t{1} << 50);
      CHECK(testing::contains(error.what(), "1125899906842624 bytes"));
    }
    const CUdeviceptr address = resource.allocate(1000, {});
    CHECK_THROWS_AS(resource.release(address, 999, {}), InvalidArgument);
    CHECK_THROWS_AS(resource.release(address + 256, 1000, {}), InvalidArgument);
    CHECK_THROWS_AS(resource.release(0x1000, 1, {}), InvalidArgument);
    CHECK(resource.stats().blocks == 1);
    resource.release(address, 1000, {});
    CHECK_THROWS_AS(resource.release(address, 1000, {}), InvalidArgument);
    testing::LogLines log;
    resource.deallocate(address, 1000, {});
    CHECK(log.lines.size() == 1);
  });
}

TEST_CASE("every resource: keeps to a limit, and to what is in use when one is set") {
  for_each_resource([](MemoryResource& resource, Device&) {
    const CUdeviceptr address = resource.allocate(1 << 20, {});
    CHECK_THROWS_AS(resource.set_limit(1000), InvalidArgument);
    resource.set_limit(4 << 20);
    CHECK(resource.stats().limit == 4 << 20);
    try {
      resource.allocate(5 << 20, {});
      FAIL("the limit was not kept");
    } catch (const OutOfMemory& error) {
      CHECK(testing::contains(error.what(), "over the limit of 4194304 bytes"));
      CHECK(error.used == 1 << 20);
    }
    resource.deallocate(resource.allocate(1 << 20, {}), 1 << 20, {});
    resource.set_limit(0);
    CHECK(resource.stats().limit == 0);
    resource.deallocate(resource.allocate(5 << 20, {}), 5 << 20, {});
    resource.deallocate(address, 1 << 20, {});
  });
}

TEST_CASE("every resource: counts what happens as a log of it does") {
  for_each_resource([](MemoryResource& resource, Device& device) {
    const std::vector<Stream> streams{{}, Stream::create(device)};
    std::mt19937_64 random(21);
    std::vector<std::tuple<CUdeviceptr, std::size_t, std::size_t>> live;
    std::uint64_t used = 0, peak = 0, allocations = 0;
    for (int step = 0; step < 300; ++step) {
      if (live.empty() || random() % 5 < 3) {
        const std::size_t bytes = 1 + random() % 100000;
        const std::size_t stream = random() % 2;
        live.emplace_back(resource.allocate(bytes, streams[stream]), bytes, stream);
        used += bytes;
        peak = std::max(peak, used);
        ++allocations;
      } else {
        std::swap(live[random() % live.size()], live.back());
        const auto [address, bytes, stream] = live.back();
        live.pop_back();
        resource.release(address, bytes, streams[stream]);
        used -= bytes;
      }
      REQUIRE(resource.stats().used == used);
    }
    const MemoryStats stats = resource.stats();
    CHECK(stats.used_peak == peak);
    CHECK(stats.allocations == allocations);
    CHECK(stats.hits + stats.misses == allocations);
    CHECK(stats.frees == allocations - live.size());
    CHECK(stats.reserved >= stats.used);
    for (const auto& [address, bytes, stream] : live) {
      resource.deallocate(address, bytes, streams[stream]);
    }
  });
}

TEST_CASE("every resource: four threads write patterns that nobody else disturbs") {
  for_each_resource([](MemoryResource& resource, Device& device) {
    std::atomic<int> wrong = 0;
    const auto work = [&](std::uint64_t seed) {
      const Stream stream = Stream::create(device);
      std::mt19937_64 random(seed);
      for (int i = 0; i < 60; ++i) {
        const std::size_t count = 1 + random() % 3000;
        const std::uint64_t pattern = seed << 32 | static_cast<std::uint64_t>(i);
        const CUdeviceptr address = resource.allocate(count * 8, stream);
        fill(device, address, pattern, 8, count, stream);
        std::vector<std::uint64_t> values(count);
        copy_to_host(device, values.data(), address, count * 8, stream);
        stream.synchronize();
        for (const std::uint64_t value : values) wrong += value != pattern ? 1 : 0;
        resource.deallocate(address, count * 8, stream);
      }
    };
    std::vector<std::thread> threads;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  });
}

TEST_CASE("every resource: buffers of it free themselves, also after use on another stream") {
  Device& device = testing::test_device();
  for (const auto& kind : makers()) {
    CAPTURE(kind.first);
    const auto resource = kind.second(device);
    const Stream first = Stream::create(device);
    const Stream second = Stream::create(device);
    for (int i = 0; i < 50; ++i) {
      Buffer buffer(resource, 4096, first);
      fill(device, buffer.address(), 1, 4, 1024, first);
      second.wait(first.record());
      fill(device, buffer.address(), 2, 4, 1024, second);
      buffer.use_on(second);
    }
    CHECK(resource->stats().blocks == 0);
    first.synchronize();
    second.synchronize();
  }
}
