// The disk cache: stored entries come back whole or not at all.
#include "jit/cache/disk_cache.h"

#include <doctest/doctest.h>

#include "base/log.h"
#include "jit/cache/disk_cache_files.h"
#include "unit/base/environment_guard.h"
#include "unit/jit/cache/cache_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;
using test::FsCall;

namespace {

IncludeClosure closure_of(const std::string& path, const std::string& text) {
  IncludeClosure closure;
  closure.files = {{path, sha256(text)}};
  return closure;
}

}  // namespace

TEST_CASE("disk cache: code comes back with all its fields, in another cache too") {
  CacheFolder folder;
  DiskCache first(folder.options());
  CHECK(fetch(first, "a").empty());
  const ObjectCode code = small_code("some code");
  CHECK(first.put(key_for("a"), {}, {}, "f.cu", code));
  DiskCache second(folder.options());
  const auto found = second.get(key_for("a"), {});
  REQUIRE(found.has_value());
  CHECK(found->serialize() == code.serialize());
  CHECK(fetch(second, "b").empty());
  CHECK(second.stats().hits == 1);
  CHECK(second.stats().misses == 1);
  CHECK(first.stats().stored == 1);
  CHECK(folder.entries().size() == 1);
}

TEST_CASE("disk cache: an entry of the same name for another key is a miss") {
  CacheFolder folder;
  DiskCacheOptions options = folder.options();
  options.name_digits = 0;  // every key has the same name
  DiskCache cache(options);
  CHECK(store(cache, "a", "code of a"));
  CHECK(fetch(cache, "b").empty());
  CHECK(fetch(cache, "a") == "code of a");
  CHECK(store(cache, "b", "code of b"));
  CHECK(fetch(cache, "a").empty());
  CHECK(fetch(cache, "b") == "code of b");
}

TEST_CASE("disk cache: code answers only for the headers it was compiled from") {
  CacheFolder folder;
  DiskCache cache(folder.options());
  const CacheKey key = key_for("a");
  const IncludeClosure included = closure_of("/inc/a.h", "int a;");
  CHECK(cache.put(key, included, {}, "f.cu", small_code("x")));
  CHECK(cache.get(key, included).has_value());
  CHECK_FALSE(cache.get(key, closure_of("/inc/a.h", "int b;")).has_value());
  CHECK_FALSE(cache.get(key, closure_of("/first/a.h", "int a;")).has_value());
  CHECK_FALSE(cache.get(key, {}).has_value());
  IncludeClosure more = included;
  more.files.push_back({"/inc/b.h", sha256("")});
  CHECK_FALSE(cache.get(key, more).has_value());
  CHECK(cache.get(key, included).has_value());
  CHECK(cache.stats().rejected == 4);
}

TEST_CASE("disk cache: CUDA's header folders must be as they were") {
  CacheFolder folder;
  DiskCache cache(folder.options());
  const std::string cuda = folder.folder / "cuda";
  test::write_text(cuda + "/cuda_fp16.h", "one");
  const CacheKey key = key_for("a");
  CHECK(cache.put(key, {}, {cuda}, "f.cu", small_code("x")));
  CHECK(cache.get(key, {}).has_value());
  test::write_text(cuda + "/another.h", "does not matter");
  CHECK(cache.get(key, {}).has_value());
  test::write_text(cuda + "/cuda_fp16.h", "a newer release");
  CHECK_FALSE(cache.get(key, {}).has_value());
  CHECK(cache.put(key, {}, {cuda}, "f.cu", small_code("x")));
  CHECK(cache.get(key, {}).has_value());
  std::filesystem::remove_all(cuda);
  CHECK_FALSE(cache.get(key, {}).has_value());
}

TEST_CASE("disk cache: a refused entry can be discarded") {
  CacheFolder folder;
  DiskCache cache(folder.options());
  store(cache, "a", "x");
  store(cache, "b", "y");
  cache.discard(key_for("a"));
  CHECK(fetch(cache, "a").empty());
  CHECK(fetch(cache, "b") == "y");
}

TEST_CASE("disk cache: list, info and verify tell what is there") {
  CacheFolder folder;
  DiskCache cache(folder.options());
  CHECK(cache.list().empty());
  CHECK(cache.info().state == "on");
  CHECK(cache.put(key_for("a"), closure_of("/inc/a.h", ""), {}, "a.cu", small_code("x")));
  CHECK(store(cache, "b", "yy"));
  set_age(folder.objects() + "/" + key_for("a").digest.to_hex() + ".kwc", 50);
  const auto lines = cache.list();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].key == key_for("b").digest.to_hex());
  CHECK(lines[1].source == "a.cu");
  CHECK(lines[1].kernels == std::vector<std::string>{"k"});
  CHECK(lines[1].headers == std::vector<std::string>{"/inc/a.h"});
  CHECK(lines[1].arch == "sm_90");
  CHECK(lines[1].nvrtc_version == "13.5");
  CHECK(lines[1].bytes ==
        std::filesystem::file_size(folder.folder / "cache/objects/" + lines[1].key + ".kwc"));
  const DiskCacheInfo info = cache.info();
  CHECK(info.entries == 2);
  CHECK(info.bytes == lines[0].bytes + lines[1].bytes);
  CHECK(info.path == folder.folder / "cache");
  CHECK(cache.verify().damaged.empty());
  test::write_text(folder.entry(0), "garbage");
  CHECK(cache.list().size() == 1);
  CHECK(cache.verify(false).damaged.size() == 1);
  const VerifyReport report = cache.verify();
  CHECK(report.checked == 2);
  CHECK(report.damaged.size() == 1);
  CHECK(cache.verify().checked == 1);
}

TEST_CASE("disk cache: clear removes entries and temporary files, and nothing else") {
  CacheFolder folder;
  DiskCache cache(folder.options());
  store(cache, "a", "x");
  store(cache, "b", "y");
  test::write_text(folder.objects() + "/.tmp-1-2", "x");
  test::write_text(folder.objects() + "/of the user.txt", "x");
  const RemovalReport removed = cache.clear();
  CHECK(removed.entries == 2);
  CHECK(removed.bytes > 0);
  CHECK(folder.entries().empty());
  CHECK(folder.temporaries().empty());
  CHECK(std::filesystem::exists(folder.objects() + "/of the user.txt"));
  CHECK(fetch(cache, "a").empty());
}

TEST_CASE("disk cache: trim drops what was not used for longest") {
  CacheFolder folder;
  DiskCache cache(folder.options());
  for (const char* name : {"a", "b", "c", "d"}) store(cache, name, name);
  cache.wait_for_sweep();
  const auto file = [&](const char* name) {
    return folder.objects() + "/" + key_for(name).digest.to_hex() + ".kwc";
  };
  set_age(file("a"), 5000);
  set_age(file("b"), 9000);
  set_age(file("c"), -90000);       // a clock went wrong: it must not stay forever
  CHECK(fetch(cache, "b") == "b");  // a use after more than an hour counts
  const std::uint64_t each = cache.info().bytes / 4;
  CHECK(cache.trim(3 * each).entries == 1);
  CHECK_FALSE(std::filesystem::exists(file("c")));
  CHECK(cache.trim(2 * each).entries == 1);
  CHECK_FALSE(std::filesystem::exists(file("a")));
  CHECK(cache.trim(2 * each).entries == 0);
  CHECK(fetch(cache, "b") == "b");
}

TEST_CASE("disk cache: a hit writes the time of use at most once an hour") {
  CacheFolder folder;
  DiskCache cache(folder.options());
  store(cache, "a", "x");
  fetch(cache, "a");
  CHECK(folder.system.calls(FsCall::touch) == 0);
  set_age(folder.entry(), 4000);
  fetch(cache, "a");
  fetch(cache, "a");
  CHECK(folder.system.calls(FsCall::touch) == 1);
}

TEST_CASE("disk cache: it does not grow beyond its limit") {
  CacheFolder folder;
  const std::uint64_t limit = 64 * 1024;
  DiskCache cache(folder.options(limit));
  const std::string text(3000, 'x');
  for (int i = 0; i < 100; ++i) {
    CHECK(store(cache, std::to_string(i), text));
    cache.wait_for_sweep();
  }
  CHECK(cache.info().bytes <= limit + limit / 16 + 4000);
  CHECK(cache.stats().evictions > 50);
  CHECK(fetch(cache, "99") == text);
  // One entry alone may not take the whole room.
  CHECK_FALSE(store(cache, "huge", std::string(limit, 'x')));
}

TEST_CASE("disk cache: thousands of entries are swept, by one process at a time") {
  CacheFolder folder;
  DiskCache cache(folder.options(1 << 20));
  store(cache, "one", "x");
  cache.wait_for_sweep();
  for (int i = 0; i < 3000; ++i) {
    const std::string path = folder.objects() + "/" + sha256(std::to_string(i)).to_hex() + ".kwc";
    test::write_text(path, std::string(1000, 'x'));
    set_age(path, i % 7 == 0 ? -1'000'000 : 1000 + i);
  }
  DiskCache other(folder.options(1 << 20));
  CHECK(store(other, "two", "y"));
  other.wait_for_sweep();
  CHECK(other.info().bytes <= (1 << 20));
  CHECK(other.stats().evictions > 1900);
  CHECK(fetch(other, "one") == "x");
  CHECK(fetch(other, "two") == "y");
}

TEST_CASE("disk cache: a sweep without time still comes closer to the limit") {
  CacheFolder folder;
  const DiskCache cache(folder.options());
  const SecureDirectory objects = cache.root().child("objects");
  for (int i = 0; i < 500; ++i) {
    const std::string path = folder.objects() + "/" + std::to_string(i) + ".kwc";
    test::write_text(path, std::string(1000, 'x'));
    set_age(path, 10'000 - i);
  }
  const auto sweep = [&](std::chrono::milliseconds budget) {
    return keep_limit(folder.system, cache.root(), objects.get(), 100'000, budget);
  };
  const Removal none_in_time = sweep(std::chrono::milliseconds(-1));
  CHECK_FALSE(none_in_time.is_done);
  int sweeps = 1;
  while (!sweep(std::chrono::milliseconds(2)).is_done) ++sweeps;
  CHECK(sweeps < 500);
  CHECK(cache.info().bytes <= 100'000);
  CHECK(cache.info().bytes >= 80'000);
  // The oldest went.
  CHECK(std::filesystem::exists(folder.objects() + "/499.kwc"));
  CHECK_FALSE(std::filesystem::exists(folder.objects() + "/0.kwc"));
  CHECK(sweep(std::chrono::milliseconds::max()).entries == 0);
}
