// The disk cache among processes: many writers, killed writers, one compile for many.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "base/fault_point.h"
#include "jit/cache/cache_entry.h"
#include "unit/base/child_process.h"
#include "unit/base/environment_guard.h"
#include "unit/jit/cache/cache_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;
using test::start_child;
using test::wait_for;

namespace {

constexpr int kProcesses = 64;
constexpr int kKeys = 200;

std::string text_of(int key) { return "code of " + std::to_string(key); }

/// Asks for every key, beginning somewhere, and stores the missing ones. 0 when all were right.
int use_all_keys(CacheFolder& folder, int process) {
  DiskCache cache(folder.options());
  for (int i = 0; i < kKeys; ++i) {
    const int key = (i + process * 7) % kKeys;
    const std::string found = fetch(cache, std::to_string(key));
    if (found.empty()) {
      if (!store(cache, std::to_string(key), text_of(key))) return 2;
    } else if (found != text_of(key)) {
      return 1;
    }
  }
  cache.wait_for_sweep();
  return cache.stats().rejected == 0 ? 0 : 3;
}

}  // namespace

TEST_CASE("disk cache: 64 processes use 200 keys at once") {
  CacheFolder folder;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(start_child([&] { return use_all_keys(folder, process); }));
  }
  for (const pid_t child : children) CHECK(wait_for(child) == 0);
  DiskCache cache(folder.options());
  CHECK(cache.verify().checked == kKeys);
  CHECK(cache.verify().damaged.empty());
  CHECK(folder.temporaries().empty());
  for (int key = 0; key < kKeys; ++key) {
    CHECK(fetch(cache, std::to_string(key)) == text_of(key));
  }
}

TEST_CASE("disk cache: killed anywhere while storing, the next process finds its feet") {
  for (const char* place :
       {"disk_cache.put", "atomic_file.opened", "atomic_file.written", "atomic_file.synced",
        "atomic_file.renamed", "disk_cache.stored", "disk_cache.sweeping"}) {
    CAPTURE(place);
    CacheFolder folder;
    {
      DiskCache cache(folder.options());
      store(cache, "old", "x");
    }
    const pid_t child = start_child([&] {
      const test::EnvironmentGuard guard("KERNWRIGHT_FAULT_KILL", place);
      DiskCache cache(folder.options());
      const auto claim = cache.claim(key_for("a"), {}, {});
      store(cache, "a", "y");
      cache.wait_for_sweep();
      return 0;
    });
    CHECK(wait_for(child) == kFaultKillStatus);
    CHECK(folder.temporaries().size() <= 1);
    DiskCache cache(folder.options());
    CHECK(fetch(cache, "old") == "x");
    const std::string found = fetch(cache, "a");
    CHECK((found.empty() || found == "y"));
    // The lock went with its process.
    CHECK(cache.claim(key_for("a"), {}, {}).lock);
    CHECK(store(cache, "a", "y"));
    cache.wait_for_sweep();
    CHECK(folder.temporaries().empty());
    CHECK(cache.verify().damaged.empty());
    CHECK(fetch(cache, "a") == "y");
  }
}

TEST_CASE("disk cache: who waits for another process's compile gets its result") {
  CacheFolder folder;
  DiskCache compiling(folder.options()), waiting(folder.options());
  DiskCache::CompileClaim first = compiling.claim(key_for("a"), {}, {});
  REQUIRE(first.lock);
  // Another key is not kept waiting.
  CHECK(waiting.claim(key_for("b"), {}, {}).lock);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    store(compiling, "a", "x");
    first.lock.reset();
  });
  const DiskCache::CompileClaim second =
      waiting.claim(key_for("a"), {}, std::chrono::milliseconds(20'000));
  other.join();
  REQUIRE(second.code.has_value());
  CHECK(second.code->code == "x");
}

TEST_CASE("disk cache: who waits for a compile that fails or takes too long compiles itself") {
  CacheFolder folder;
  DiskCache compiling(folder.options()), waiting(folder.options());
  DiskCache::CompileClaim first = compiling.claim(key_for("a"), {}, {});
  REQUIRE(first.lock);
  const auto too_long = waiting.claim(key_for("a"), {}, std::chrono::milliseconds(20));
  CHECK_FALSE(too_long.lock);
  CHECK_FALSE(too_long.code.has_value());
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    first.lock.reset();
  });
  const auto failed = waiting.claim(key_for("a"), {}, std::chrono::milliseconds(20'000));
  other.join();
  CHECK(failed.lock);
  CHECK_FALSE(failed.code.has_value());
}

TEST_CASE("disk cache: where locks do not work nobody waits") {
  CacheFolder folder;
  DiskCache cache(folder.options());
  for (const int error : {ENOLCK, ESTALE, EIO, ENOSYS}) {
    folder.system.fail(test::FsCall::try_lock, error, 1, true);
    const auto claim = cache.claim(key_for("a"), {}, std::chrono::milliseconds(20'000));
    CHECK_FALSE(claim.lock);
    CHECK_FALSE(claim.code.has_value());
    CHECK(store(cache, "a", "x"));
    folder.system.heal();
  }
}
