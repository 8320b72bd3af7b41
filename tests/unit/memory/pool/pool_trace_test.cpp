// The pool under random programs: statistics against an independent log, threads, fragmentation.
#include "base/errors.h"
#include "core/device.h"
#include "memory/pool/pool_resource.h"
#include "unit/core/fake_driver.h"
#include "unit/memory/logged_resource.h"
#include "unit/memory/memory_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

using namespace kernwright;
using testing::FakeDriver;
using testing::fresh_device;
using testing::kMiB;
using testing::LoggedResource;

namespace {

/// A size as programs ask for: many small ones, some large.
std::size_t random_size(std::mt19937_64& random) {
  const unsigned kind = random() % 100;
  if (kind < 50) return 1 + random() % 4096;
  if (kind < 80) return 1 + random() % (256 << 10);
  if (kind < 97) return 1 + random() % (8 * kMiB);
  return 1 + random() % (64 * kMiB);
}

}  // namespace

TEST_CASE("pool statistics: equal to an independent log of the events, in a random program") {
  Device& device = fresh_device();
  const auto upstream = std::make_shared<LoggedResource>(device);
  upstream->capacity = 600 * kMiB;
  const auto pool = std::make_shared<PoolResource>(upstream);
  const std::vector<Stream> streams{{}, Stream::create(device), Stream::create(device)};
  struct Live {
    CUdeviceptr address;
    std::size_t bytes;
    std::size_t stream;
  };
  std::vector<Live> live;
  std::mt19937_64 random(5);
  std::uint64_t used = 0, used_peak = 0, allocations = 0, frees = 0, failures = 0, misses = 0;
  for (int step = 0; step < 30000; ++step) {
    const std::size_t which = random() % streams.size();
    if (random() % 100 < 55) {
      const std::size_t bytes = random_size(random);
      const std::uint64_t before = upstream->allocs;
      try {
        live.push_back({pool->allocate(bytes, streams[which]), bytes, which});
        REQUIRE(upstream->covers(live.back().address, bytes));
        ++allocations;
        misses += upstream->allocs != before ? 1 : 0;
        used += bytes;
        used_peak = std::max(used_peak, used);
      } catch (const OutOfMemory& error) {
        REQUIRE(error.requested == bytes);
        REQUIRE(error.used == used);
        ++failures;
        for (int i = 0; i < 100 && !live.empty(); ++i) {
          pool->release(live.back().address, live.back().bytes, streams[live.back().stream]);
          used -= live.back().bytes;
          live.pop_back();
          ++frees;
        }
      }
    } else if (!live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      // Freed on a stream of its own choice, as Buffer's owners may.
      pool->release(live.back().address, live.back().bytes, streams[which]);
      used -= live.back().bytes;
      live.pop_back();
      ++frees;
    }
    if (step % 3000 == 0) pool->trim(random() % (200 * kMiB));
    const MemoryStats stats = pool->stats();
    REQUIRE(stats.used == used);
    REQUIRE(stats.blocks == live.size());
    REQUIRE(stats.reserved == upstream->reserved);
    REQUIRE(stats.driver_allocs == upstream->allocs);
    REQUIRE(stats.driver_frees == upstream->frees);
  }
  const MemoryStats stats = pool->stats();
  CHECK(stats.used_peak == used_peak);
  CHECK(stats.reserved_peak == upstream->peak);
  CHECK(stats.allocations == allocations);
  CHECK(stats.frees == frees);
  CHECK(stats.failures == failures);
  CHECK(failures > 0);
  CHECK(stats.misses == misses);
  CHECK(stats.hits == allocations - misses);
  for (const Live& entry : live) pool->release(entry.address, entry.bytes, {});
  pool->trim();
  CHECK(upstream->reserved == 0);
}

TEST_CASE("pool: what is reserved stays within 1.5 times what is used, at their peaks") {
  int seed = 0;
  SUBCASE("1") { seed = 1; }
  SUBCASE("2") { seed = 2; }
  SUBCASE("3") { seed = 3; }
  Device& device = fresh_device();
  const auto upstream = std::make_shared<LoggedResource>(device);
  const auto pool = std::make_shared<PoolResource>(upstream);
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::vector<std::pair<CUdeviceptr, std::size_t>> live;
  std::uint64_t used = 0, used_peak = 0;
  // The program's appetite goes up and down, as between the phases of a training step.
  for (int step = 0; step < 40000; ++step) {
    const bool hungry = (step / 2000) % 3 != 2;
    if (live.empty() || random() % 100 < (hungry ? 53 : 40)) {
      const std::size_t bytes = random_size(random);
      live.emplace_back(pool->allocate(bytes, {}), bytes);
      used += bytes;
      used_peak = std::max(used_peak, used);
    } else {
      std::swap(live[random() % live.size()], live.back());
      pool->deallocate(live.back().first, live.back().second, {});
      used -= live.back().second;
      live.pop_back();
    }
  }
  CHECK(static_cast<double>(upstream->peak) <= 1.5 * static_cast<double>(used_peak));
  for (const auto& [address, bytes] : live) pool->deallocate(address, bytes, {});
}

namespace {

/// Runs a program's allocations and frees on a pool, and gives reserved over used at their peaks.
class Trace {
 public:
  Trace()
      : upstream_(std::make_shared<LoggedResource>(fresh_device())),
        pool_(std::make_shared<PoolResource>(upstream_)) {}
  ~Trace() {
    for (const auto& [address, bytes] : live_) pool_->deallocate(address, bytes, {});
  }
  CUdeviceptr make(std::size_t bytes) {
    const CUdeviceptr address = pool_->allocate(bytes, {});
    live_[address] = bytes;
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    return address;
  }
  void drop(CUdeviceptr address) {
    const auto found = live_.find(address);
    pool_->deallocate(address, found->second, {});
    used_ -= found->second;
    live_.erase(found);
  }
  double ratio() const { return static_cast<double>(upstream_->peak) / static_cast<double>(peak_); }

 private:
  std::shared_ptr<LoggedResource> upstream_;
  std::shared_ptr<PoolResource> pool_;
  std::map<CUdeviceptr, std::size_t> live_;
  std::uint64_t used_ = 0, peak_ = 0;
};

}  // namespace

TEST_CASE("pool: the traces of well-known kinds of programs stay within 1.5 times what they use") {
  SUBCASE("training a transformer, with sequences of changing length") {
    Trace trace;
    std::mt19937_64 random(31);
    constexpr std::size_t kWidth = 1024, kLayers = 12, kBatch = 8;
    std::vector<CUdeviceptr> lasting;
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      for (const std::size_t factor : {3, 1, 4, 4}) {  // weights, and two moments of each
        for (int i = 0; i < 3; ++i) lasting.push_back(trace.make(factor * kWidth * kWidth * 4));
      }
      for (int i = 0; i < 4; ++i) lasting.push_back(trace.make(kWidth * 4));
    }
    for (int step = 0; step < 60; ++step) {
      const std::size_t rows = kBatch * (64 + random() % 448);
      std::vector<CUdeviceptr> saved, gradients;
      for (std::size_t layer = 0; layer < kLayers; ++layer) {
        for (const std::size_t factor : {1, 3, 1, 1, 4, 4}) {
          saved.push_back(trace.make(rows * kWidth * factor * 2));
          trace.drop(trace.make(rows * kWidth * 2));  // workspace
        }
      }
      for (std::size_t layer = 0; layer < kLayers; ++layer) {
        for (int i = 0; i < 6; ++i) {
          trace.drop(trace.make(rows * kWidth * 2));
          trace.drop(saved.back());
          saved.pop_back();
        }
        for (const std::size_t factor : {3, 1, 4, 4}) {
          gradients.push_back(trace.make(factor * kWidth * kWidth * 4));
        }
      }
      for (const CUdeviceptr gradient : gradients) trace.drop(gradient);
    }
    CHECK(trace.ratio() <= 1.5);
  }
  SUBCASE("serving requests whose caches grow by copying") {
    Trace trace;
    std::mt19937_64 random(32);
    struct Request {
      CUdeviceptr cache;
      std::size_t length, end;
    };
    constexpr std::size_t kToken = 16 << 10;
    std::vector<Request> active;
    for (int step = 0; step < 8000; ++step) {
      if (active.size() < 24 && random() % 4 == 0) {
        const std::size_t length = 16 + random() % 500;
        active.push_back({trace.make(length * kToken), length, length + 50 + random() % 400});
      }
      if (active.empty()) continue;
      Request& request = active[random() % active.size()];
      request.length += 32;
      const CUdeviceptr grown = trace.make(request.length * kToken);
      trace.drop(request.cache);
      request.cache = grown;
      trace.drop(trace.make(random() % 4096 * 64 + 1));
      if (request.length < request.end) continue;
      trace.drop(request.cache);
      request = active.back();
      active.pop_back();
    }
    CHECK(trace.ratio() <= 1.5);
  }
  SUBCASE("sorting and joining tables of many sizes, depth first") {
    Trace trace;
    std::mt19937_64 random(33);
    std::vector<CUdeviceptr> stack;
    for (int step = 0; step < 20000; ++step) {
      const std::size_t rows = std::size_t{1} << (8 + random() % 14);
      if (stack.size() < 12 && random() % 2 == 0) {
        stack.push_back(trace.make(rows * (4 + random() % 60)));
      } else if (!stack.empty()) {
        trace.drop(stack.back());
        stack.pop_back();
      }
      trace.drop(trace.make(rows * 8));
    }
    CHECK(trace.ratio() <= 1.5);
  }
}

TEST_CASE("pool: four threads with 10^4 operations each never hold the same bytes") {
  Device& device = fresh_device();
  const auto upstream = std::make_shared<LoggedResource>(device);
  const auto pool = std::make_shared<PoolResource>(upstream);
  std::mutex mutex;
  std::map<CUdeviceptr, CUdeviceptr> held;  // begin to end
  bool overlap = false;
  const auto work = [&](std::uint64_t seed) {
    const Stream stream = seed % 2 == 0 ? Stream::create(device) : Stream();
    std::mt19937_64 random(seed);
    std::vector<std::pair<CUdeviceptr, std::size_t>> mine;
    for (int i = 0; i < 10000; ++i) {
      if (mine.empty() || (mine.size() < 50 && random() % 2 == 0)) {
        const std::size_t bytes = 1 + random() % (random() % 16 == 0 ? 4 * kMiB : 20000);
        const CUdeviceptr address = pool->allocate(bytes, stream);
        mine.emplace_back(address, bytes);
        const std::lock_guard lock(mutex);
        const auto next = held.lower_bound(address + bytes);
        if (next != held.begin() && std::prev(next)->second > address) overlap = true;
        held[address] = address + bytes;
      } else {
        std::swap(mine[random() % mine.size()], mine.back());
        {
          const std::lock_guard lock(mutex);
          held.erase(mine.back().first);
        }
        pool->deallocate(mine.back().first, mine.back().second, stream);
        mine.pop_back();
      }
      if (i % 2500 == 0) pool->trim(8 * kMiB);
    }
    for (const auto& [address, bytes] : mine) {
      const std::lock_guard lock(mutex);
      held.erase(address);
      pool->deallocate(address, bytes, stream);
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(overlap);
  CHECK(held.empty());
  const MemoryStats stats = pool->stats();
  CHECK(stats.used == 0);
  CHECK(stats.allocations == stats.frees);
  pool->trim();
  CHECK(upstream->reserved == 0);
}
