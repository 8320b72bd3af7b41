// The disk cache with damaged entries, failing calls and untrusted directories.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/log.h"
#include "jit/cache/cache_entry.h"
#include "unit/jit/cache/cache_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;
using test::FsCall;
using test::read_text;
using test::write_text;

namespace {

/// Counts the warnings of its lifetime.
struct Warnings {
  Warnings() {
    set_log_sink([this](LogLevel level, std::string_view text) {
      if (level == LogLevel::warning) texts.emplace_back(text);
    });
  }
  ~Warnings() { set_log_sink({}); }
  std::vector<std::string> texts;
};

/// Puts `bytes` where the entry is: a miss, the damaged file goes, the next store is a hit.
void check_damaged(CacheFolder& folder, DiskCache& cache, const std::string& path,
                   const std::string& bytes) {
  write_text(path, bytes);
  const bool missed = fetch(cache, "a").empty();
  const bool removed = !std::filesystem::exists(path);
  const bool stored = store(cache, "a", "code");
  const bool hit = fetch(cache, "a") == "code";
  CHECK((missed && removed && stored && hit));
  CHECK(folder.system.open_files() == 3);  // the cache's two folders and its lock
}

}  // namespace

TEST_CASE("disk cache: every truncation of an entry is a miss, then stored anew") {
  CacheFolder folder;
  DiskCache cache(folder.options());
  REQUIRE(store(cache, "a", "code"));
  cache.claim(key_for("x"), {}, {});  // opens the lock file
  cache.wait_for_sweep();
  const std::string path = folder.entry();
  const std::string whole = read_text(path);
  REQUIRE(whole.size() > 200);
  REQUIRE(whole.size() < 1000);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    check_damaged(folder, cache, path, whole.substr(0, length));
  }
  check_damaged(folder, cache, path, whole + "x");
}

TEST_CASE("disk cache: every single flipped bit of an entry is a miss, then stored anew") {
  CacheFolder folder;
  DiskCache cache(folder.options());
  REQUIRE(store(cache, "a", "code"));
  cache.claim(key_for("x"), {}, {});
  cache.wait_for_sweep();
  const std::string path = folder.entry();
  const std::string whole = read_text(path);
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    check_damaged(folder, cache, path, flipped);
  }
}

TEST_CASE("disk cache: a read that fails says nothing about the entry") {
  CacheFolder folder;
  DiskCache cache(folder.options());
  store(cache, "a", "x");
  cache.wait_for_sweep();  // the sweep would meet the failures
  for (const FsCall call : {FsCall::open, FsCall::status, FsCall::read}) {
    for (const int error : {EIO, ESTALE, EACCES}) {
      folder.system.fail(call, error);
      CHECK(fetch(cache, "a").empty());
      folder.system.heal();
      CHECK(fetch(cache, "a") == "x");
    }
  }
  folder.system.most_bytes = 5;
  CHECK(fetch(cache, "a") == "x");
}

TEST_CASE("disk cache: any call may fail with any error, while looking up and while storing") {
  CacheFolder folder;
  folder.system.most_bytes = 200;
  const Warnings warnings;
  for (const int error : test::kFsErrors) {
    for (const bool stays : {false, true}) {
      if (stays && error == EINTR) continue;  // no system interrupts every call
      for (int nth = 1;; ++nth) {
        CAPTURE(error);
        CAPTURE(nth);
        folder.system.heal();
        int fired = 0;
        {
          DiskCache cache(folder.options());
          folder.system.fail_any(error, nth, stays);
          const std::string before = fetch(cache, "a");
          CHECK((before.empty() || before == "code"));
          {
            const DiskCache::CompileClaim claim =
                cache.claim(key_for("a"), {}, std::chrono::milliseconds(0));
            CHECK((!claim.code || claim.code->code == "code"));
          }
          store(cache, "a", "code");
          const std::string after = fetch(cache, "a");
          CHECK((after.empty() || after == "code"));
          cache.wait_for_sweep();
          fired = folder.system.fired();
        }
        CHECK(folder.system.open_files() == 0);
        folder.system.heal();
        DiskCache healthy(folder.options());
        const std::string left = fetch(healthy, "a");
        CHECK((left.empty() || left == "code"));
        CHECK(store(healthy, "a", "code"));
        CHECK(fetch(healthy, "a") == "code");
        healthy.clear();
        if (fired == 0) break;
        REQUIRE(nth < 200);
      }
    }
  }
}

TEST_CASE("disk cache: a full disk costs one warning and leaves no temporary file") {
  CacheFolder folder;
  DiskCache cache(folder.options());
  store(cache, "before", "x");
  cache.wait_for_sweep();
  folder.system.most_bytes = 64;
  const Warnings warnings;
  for (const int error : {ENOSPC, EDQUOT}) {
    for (int nth = 1; nth <= 5; ++nth) {
      folder.system.fail(FsCall::write, error, nth, true);
      CHECK_FALSE(store(cache, "a", "x"));
      folder.system.heal();
    }
  }
  CHECK(folder.temporaries().empty());
  REQUIRE(warnings.texts.size() == 1);
  CHECK(warnings.texts[0].find("No space") != std::string::npos);
  CHECK(warnings.texts[0].find(folder.objects()) != std::string::npos);
  CHECK(fetch(cache, "before") == "x");
  CHECK(store(cache, "a", "x"));  // room again
}

TEST_CASE("disk cache: a read-only folder is read, with one warning when it should be written") {
  CacheFolder folder;
  {
    DiskCache cache(folder.options());
    store(cache, "a", "x");
  }
  const Warnings warnings;
  DiskCache cache(folder.options());
  folder.system.fail(FsCall::open, EROFS, 1);
  CHECK_FALSE(store(cache, "b", "y"));
  folder.system.heal();
  CHECK_FALSE(store(cache, "b", "y"));  // it does not try again
  CHECK(cache.info().state == "read-only");
  CHECK(fetch(cache, "a") == "x");
  CHECK(warnings.texts.size() == 1);
}

TEST_CASE("disk cache: a folder that cannot be trusted is not used at all") {
  CacheFolder folder;
  {
    DiskCache cache(folder.options());
    store(cache, "a", "x");
  }
  const Warnings warnings;
  const auto check_off = [&](const DiskCacheOptions& options, const char* reason) {
    const std::size_t before = warnings.texts.size();
    DiskCache cache(options);
    CHECK(cache.info().state == "off");
    CHECK(cache.info().reason.find(reason) != std::string::npos);
    CHECK(fetch(cache, "a").empty());
    CHECK_FALSE(store(cache, "b", "y"));
    CHECK(fetch(cache, "b").empty());
    cache.discard(key_for("a"));
    CHECK_FALSE(cache.claim(key_for("a"), {}, {}).lock);
    CHECK(cache.list().empty());
    CHECK(cache.clear().entries == 0);
    CHECK(warnings.texts.size() == before + 1);
    CHECK(warnings.texts.back().find("memory only") != std::string::npos);
  };
  REQUIRE(::chmod((folder.folder / "cache").c_str(), 0777) == 0);
  check_off(folder.options(), "other users can write");
  REQUIRE(::chmod((folder.folder / "cache").c_str(), 0700) == 0);
  REQUIRE(::chmod(folder.objects().c_str(), 0770) == 0);
  check_off(folder.options(), "other users can write");
  REQUIRE(::chmod(folder.objects().c_str(), 0700) == 0);
  if (::geteuid() == 0) {
    REQUIRE(::chown(folder.objects().c_str(), 12345, 0) == 0);
    check_off(folder.options(), "uid 12345");
    REQUIRE(::chown(folder.objects().c_str(), 0, 0) == 0);
  }
  DiskCacheOptions options = folder.options();
  std::filesystem::create_directory_symlink(folder.folder / "cache", folder.folder / "link");
  options.directory = folder.folder / "link";
  check_off(options, "link");
  write_text(folder.folder / "file", "");
  options.directory = folder.folder / "file";
  check_off(options, "not a folder");
  options.directory.clear();
  check_off(options, "HOME");
  DiskCache cache(folder.options());
  CHECK(fetch(cache, "a") == "x");  // nobody touched it
}

TEST_CASE("disk cache: planted entries are never read") {
  CacheFolder folder;
  DiskCache cache(folder.options());
  store(cache, "a", "planted");
  cache.wait_for_sweep();
  const std::string path = folder.entry();
  const std::string elsewhere = folder.folder / "elsewhere";
  const auto check_refused = [&] {
    CHECK(fetch(cache, "a").empty());
    CHECK(std::filesystem::symlink_status(path).type() != std::filesystem::file_type::not_found);
    CHECK(store(cache, "a", "own"));  // takes the name over
    CHECK(fetch(cache, "a") == "own");
    CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(path)));
  };
  std::filesystem::rename(path, elsewhere);
  std::filesystem::create_symlink(elsewhere, path);
  check_refused();
  CHECK_FALSE(read_text(elsewhere).empty());
  REQUIRE(::chmod(path.c_str(), 0666) == 0);
  check_refused();
  std::filesystem::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  check_refused();
  if (::geteuid() == 0) {
    REQUIRE(::chown(path.c_str(), 12345, 0) == 0);
    check_refused();
  }
  // A link in the place of the lock file costs the hint only.
  std::filesystem::remove(folder.objects() + "/lock");
  std::filesystem::create_symlink(elsewhere, folder.objects() + "/lock");
  DiskCache other(folder.options());
  CHECK_FALSE(other.claim(key_for("b"), {}, {}).lock);
  CHECK(store(other, "b", "y"));
}

TEST_CASE("disk cache: a loss of power loses entries, never their truth") {
  CacheFolder folder;
  DiskCache cache(folder.options());
  store(cache, "a", "x");
  folder.system.fail(FsCall::sync, EIO);
  const Warnings warnings;
  CHECK_FALSE(store(cache, "b", "y"));  // not known to be on the disk: not published
  folder.system.lose_unsynced();
  CHECK(fetch(cache, "a") == "x");
  CHECK(fetch(cache, "b").empty());
  // A disk that reports syncs it has not done: the entry is there, its contents are not.
  std::filesystem::resize_file(folder.entry(), 0);
  CHECK(fetch(cache, "a").empty());
  CHECK(store(cache, "a", "x"));
}
