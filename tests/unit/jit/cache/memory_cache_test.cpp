// The per-process cache of object code.
#include "jit/cache/memory_cache.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace kernwright;

namespace {

ObjectCode code_of(std::size_t bytes, const char* arch = "sm_80") {
  ObjectCode code;
  code.arch = arch;
  code.code.assign(bytes, 'x');
  return code;
}

Sha256Digest key(int n) { return sha256(std::to_string(n)); }

}  // namespace

TEST_CASE("memory cache: the second call is a hit") {
  MemoryCache cache(4, 1 << 20);
  int made = 0;
  const auto make = [&] {
    ++made;
    return code_of(10);
  };
  const auto first = cache.get(key(1), make);
  CHECK(cache.get(key(1), make) == first);
  CHECK(made == 1);
  CHECK(cache.stats().hits == 1);
  CHECK(cache.stats().misses == 1);
  CHECK(cache.stats().entries == 1);
}

TEST_CASE("memory cache: the least recently used goes first, by count") {
  MemoryCache cache(2, 1 << 20);
  int made = 0;
  const auto make = [&] {
    ++made;
    return code_of(10);
  };
  cache.get(key(1), make);
  cache.get(key(2), make);
  cache.get(key(1), make);
  cache.get(key(3), make);
  CHECK(made == 3);
  cache.get(key(1), make);
  CHECK(made == 3);
  cache.get(key(2), make);
  CHECK(made == 4);
  CHECK(cache.stats().evictions == 2);
  CHECK(cache.stats().entries == 2);
}

TEST_CASE("memory cache: and by bytes; too large entries are handed out only") {
  MemoryCache cache(100, 10000);
  cache.get(key(1), [] { return code_of(4000); });
  cache.get(key(2), [] { return code_of(4000); });
  CHECK(cache.stats().entries == 2);
  cache.get(key(3), [] { return code_of(4000); });
  CHECK(cache.stats().entries == 2);
  CHECK(cache.stats().bytes <= 10000);
  CHECK(cache.get(key(4), [] { return code_of(20000); })->code.size() == 20000);
  CHECK(cache.stats().entries == 2);
}

TEST_CASE("memory cache: failures reach the caller and are not kept") {
  MemoryCache cache(4, 1 << 20);
  CHECK_THROWS_WITH(cache.get(key(1), []() -> ObjectCode { throw std::runtime_error("no"); }),
                    "no");
  CHECK(cache.stats().entries == 0);
  CHECK(cache.get(key(1), [] { return code_of(5); })->code.size() == 5);
}

TEST_CASE("memory cache: one attempt for many threads, also when it fails") {
  for (const bool fails : {false, true}) {
    MemoryCache cache(4, 1 << 20);
    std::atomic<int> made = 0;
    std::atomic<int> failed = 0;
    std::atomic<int> arrived = 0;
    const auto make = [&]() -> ObjectCode {
      ++made;
      // Ends when all threads have at least begun their call, and some time to reach the wait.
      while (arrived < 16) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (fails) throw std::runtime_error("no");
      return code_of(7);
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([&] {
        ++arrived;
        try {
          if (cache.get(key(9), make)->code.size() != 7) ++failed;
        } catch (const std::runtime_error&) {
          ++failed;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(made == 1);
    CHECK(failed == (fails ? 16 : 0));
    CHECK(cache.stats().entries == (fails ? 0 : 1));
  }
}

TEST_CASE("memory cache: different keys are made at the same time") {
  MemoryCache cache(4, 1 << 20);
  std::atomic<int> inside = 0;
  const auto make = [&] {
    ++inside;
    while (inside < 2) std::this_thread::yield();  // returns only when the other one runs too
    return code_of(1);
  };
  std::thread other([&] { cache.get(key(1), make); });
  cache.get(key(2), make);
  other.join();
  CHECK(cache.stats().misses == 2);
}

TEST_CASE("memory cache: erase forgets one entry") {
  MemoryCache cache(4, 1 << 20);
  cache.get(key(1), [] { return code_of(1); });
  cache.get(key(2), [] { return code_of(1); });
  const auto bytes = cache.stats().bytes;
  cache.erase(key(1));
  cache.erase(key(3));
  CHECK(cache.stats().entries == 1);
  CHECK(cache.stats().bytes == bytes / 2);
  cache.get(key(2), [] { return code_of(1); });
  CHECK(cache.stats().misses == 2);
}

TEST_CASE("memory cache: clear forgets") {
  MemoryCache cache(4, 1 << 20);
  cache.get(key(1), [] { return code_of(1); });
  cache.clear();
  CHECK(cache.stats().entries == 0);
  CHECK(cache.stats().bytes == 0);
  cache.get(key(1), [] { return code_of(1); });
  CHECK(cache.stats().misses == 2);
}
