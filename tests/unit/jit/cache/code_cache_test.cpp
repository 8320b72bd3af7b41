// Memory, disk and compiler: the source of each answer, and code that must never be one.
#include "jit/cache/code_cache.h"

#include <doctest/doctest.h>

#include <thread>

#include "base/log.h"
#include "unit/base/environment_guard.h"
#include "unit/jit/cache/code_cache_fixture.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

int compiled() { return FakeNvrtc::get().compiled; }

}  // namespace

TEST_CASE("code cache: a new process finds its kernels without opening NVRTC") {
  CodeCacheFolder folder;
  const OwnedRequest request(kKernel);
  const auto first = folder.open();
  const auto code = first->get(request.get()).code;
  CHECK(code->origin == CodeOrigin::compiled);
  CHECK(first->get(request.get()).code == code);
  CHECK(compiled() == 1);
  CHECK(folder.nvrtc.opened == 1);
  const auto second = folder.open();
  const auto found = second->get(request.get()).code;
  CHECK(found->origin == CodeOrigin::disk);
  CHECK(found->code == code->code);
  CHECK(second->get(request.get()).code == found);
  CHECK(compiled() == 1);
  CHECK(folder.nvrtc.opened == 1);
  CHECK(second->stats().disk_hits == 1);
  CHECK(second->stats().memory_hits == 1);
  CHECK(second->stats().compiles == 0);
  CHECK(first->stats().compiles == 1);
  CHECK(first->stats().stored == 1);
  CHECK(first->stats().misses == 1);
}

TEST_CASE("code cache: code comes with the layer that had it") {
  CodeCacheFolder folder;
  const OwnedRequest request(kKernel);
  const auto layer = [&](CodeCache& cache) { return cache.get(request.get()).layer; };
  const auto first = folder.open(), second = folder.open();
  CHECK(layer(*first) == CodeLayer::compiler);
  CHECK(layer(*second) == CodeLayer::disk);
  CHECK(layer(*first) == CodeLayer::memory);
  CHECK(layer(*folder.open(CacheMode::off)) == CodeLayer::compiler);
  folder.nvrtc.is_missing = true;
  const auto third = folder.open();
  CHECK(layer(*third) == CodeLayer::disk);
  CHECK(layer(*third) == CodeLayer::memory);
}

TEST_CASE("code cache: other text, names, options and targets are other entries") {
  CodeCacheFolder folder;
  const auto cache = folder.open();
  cache->get(OwnedRequest(kKernel).get());
  cache->get(OwnedRequest(kKernel + " ").get());
  cache->get(OwnedRequest(kKernel, "sm_80").get());
  OwnedRequest request(kKernel);
  request.options.fast_math = true;
  request.refresh();
  cache->get(request.get());
  CodeRequest named = request.get();
  named.names = {"k"};
  cache->get(named);
  named.with_lines = true;
  cache->get(named);
  CHECK(compiled() == 6);
  CHECK(folder.entries().size() == 6);
}

TEST_CASE("code cache: two NVRTCs keep their results apart") {
  CodeCacheFolder folder;
  const OwnedRequest request(kKernel);
  folder.open()->get(request.get());
  // The same version with other builtins; another version.
  InstalledNvrtc other(folder.folder / "other", "other builtins");
  CodeCache::Options options;
  options.disk = folder.options();
  options.compiler = other.source();
  CodeCache(options).get(request.get());
  CHECK(compiled() == 1);  // reset() began the count anew
  other.loaded.minor = 2;
  std::filesystem::remove_all(folder.folder / "cache/compilers");
  options.compiler = other.source();
  CodeCache(options).get(request.get());
  CHECK(compiled() == 2);
  CHECK(folder.entries().size() == 3);
  options.compiler = other.source();
  CHECK(CodeCache(options).get(request.get()).code->origin == CodeOrigin::disk);
}

TEST_CASE("code cache: an NVRTC that was replaced in its place is noticed") {
  CodeCacheFolder folder;
  const OwnedRequest request(kKernel);
  folder.open()->get(request.get());
  test::write_text(folder.nvrtc.loaded.builtins_path, "builtins of a new release");
  CHECK(folder.open()->get(request.get()).code->origin == CodeOrigin::compiled);
  CHECK(compiled() == 2);
  CHECK(folder.open()->get(request.get()).code->origin == CodeOrigin::disk);
  CHECK(folder.nvrtc.opened == 2);
}

TEST_CASE("code cache: with no NVRTC what is stored still serves") {
  CodeCacheFolder folder;
  const OwnedRequest request(kKernel);
  folder.open()->get(request.get());
  std::filesystem::remove(folder.nvrtc.library);
  folder.nvrtc.is_missing = true;
  const auto cache = folder.open();
  const auto code = cache->get(request.get()).code;
  CHECK(code->origin == CodeOrigin::disk);
  CHECK(cache->get(request.get()).code == code);
  CHECK_THROWS_AS(cache->get(OwnedRequest(kKernel + " ").get()), NvrtcNotFound);
  CHECK_THROWS_AS(cache->get(OwnedRequest(kKernel, "sm_100").get()), NvrtcNotFound);
}

TEST_CASE("code cache: failures are not kept") {
  CodeCacheFolder folder;
  const OwnedRequest request(kKernel);
  FakeNvrtc& fake = FakeNvrtc::get();
  fake.compile_result = NVRTC_ERROR_COMPILATION;
  fake.log = "kernel.cu(1): error: no\n";
  const auto cache = folder.open();
  CHECK_THROWS_AS(cache->get(request.get()), CompileError);
  fake.compile_result = NVRTC_ERROR_OUT_OF_MEMORY;
  CHECK_THROWS(cache->get(request.get()));
  CHECK(folder.entries().empty());
  fake.compile_result = NVRTC_SUCCESS;
  CHECK(cache->get(request.get()).code->origin == CodeOrigin::compiled);
  CHECK(folder.entries().size() == 1);
}

TEST_CASE("code cache: what may lack its types for a passing reason is not kept on the disk") {
  CodeCacheFolder folder;
  const OwnedRequest request(kKernel);
  FakeNvrtc& fake = FakeNvrtc::get();
  fake.log = "Catastrophic error: unable to obtain mapped memory\n";
  fake.failing = {0, 1, 3};
  CHECK_NOTHROW(folder.open()->get(request.get()));
  CHECK(fake.compiled == 5);
  const auto next = folder.open();
  CHECK_NOTHROW(next->get(request.get()));
  CHECK(next->stats().disk_hits == 0);
  CHECK(folder.open()->get(request.get()).code->origin == CodeOrigin::disk);
}

TEST_CASE("code cache: a timeout leaves no entry") {
  CodeCacheFolder folder;
  OwnedRequest request(kKernel);
  request.options.timeout = std::chrono::milliseconds(5);
  FakeNvrtc::get().compile_time = std::chrono::milliseconds(500);
  CHECK_THROWS_AS(folder.open()->get(request.get()), Timeout);
  CHECK(folder.entries().empty());
  FakeNvrtc::get().compile_time = std::chrono::milliseconds(0);
  CHECK(folder.open()->get(request.get()).code->origin == CodeOrigin::compiled);
}

TEST_CASE("code cache: a kernel that moved within its file is a hit, its warnings move along") {
  CodeCacheFolder folder;
  FakeNvrtc::get().log = "kernel.cu(1): warning #177-D: variable \"x\" was declared\n";
  OwnedRequest request(kKernel);
  request.source.first_line = 10;
  const auto first = folder.open()->get(request.get()).code;
  REQUIRE(first->diagnostics.size() == 1);
  CHECK(first->diagnostics[0].line == 10);
  request.source.first_line = 50;
  const auto cache = folder.open();
  const auto moved = cache->get(request.get()).code;
  CHECK(compiled() == 1);
  CHECK(moved->diagnostics.at(0).line == 50);
  CHECK(cache->get(request.get()).code == moved);  // the same object: its module is loaded once
  request.source.first_line = 1;
  CHECK(cache->get(request.get()).code->diagnostics.at(0).line == 1);
}

TEST_CASE("code cache: an edited header, a new one in front and a removed one are misses") {
  CodeCacheFolder folder;
  OwnedRequest request("#include \"a.h\"\n" + kKernel);
  request.options.include_dirs = {folder.folder / "first", folder.folder / "second"};
  std::filesystem::create_directory(folder.folder / "first");
  request.refresh();
  const std::string early = folder.folder / "first/a.h", late = folder.folder / "second/a.h";
  test::write_text(late, "int a;");
  const auto origin = [&] { return folder.open()->get(request.get()).code->origin; };
  CHECK(origin() == CodeOrigin::compiled);
  CHECK(origin() == CodeOrigin::disk);
  test::write_text(late, "int b;");
  CHECK(origin() == CodeOrigin::compiled);
  CHECK(origin() == CodeOrigin::disk);
  test::write_text(early, "int b;");
  CHECK(origin() == CodeOrigin::compiled);
  CHECK(origin() == CodeOrigin::disk);
  test::write_text(folder.folder / "second/unrelated.h", "int c;");
  CHECK(origin() == CodeOrigin::disk);
  std::filesystem::remove(early);
  CHECK(origin() == CodeOrigin::compiled);
  // The memory looks as closely.
  const auto cache = folder.open(CacheMode::memory);
  const auto before = cache->get(request.get()).code;
  CHECK(cache->get(request.get()).code == before);
  test::write_text(late, "int d;");
  CHECK(cache->get(request.get()).code != before);
}

TEST_CASE("code cache: what cannot be tracked is not kept") {
  CodeCacheFolder folder;
  const auto compiles_always = [&](const OwnedRequest& request) {
    const auto cache = folder.open();
    const int before = compiled();
    cache->get(request.get());
    cache->get(request.get());
    return compiled() == before + 2 && folder.entries().empty();
  };
  OwnedRequest computed("#include \"a.h\"\n" + kKernel);
  std::filesystem::create_directory(folder.folder / "include");
  test::write_text(folder.folder / "include/a.h", "#define S(x) #x\n#include S(b.h)\n");
  computed.options.include_dirs = {folder.folder / "include"};
  computed.refresh();
  CHECK(compiles_always(computed));
  OwnedRequest off(kKernel);
  const auto cache = folder.open(CacheMode::off);
  const int before = compiled();
  cache->get(off.get());
  cache->get(off.get());
  CHECK(compiled() == before + 2);
}

TEST_CASE("code cache: a refused entry is compiled anew, once") {
  CodeCacheFolder folder;
  const OwnedRequest request(kKernel);
  const auto compiled_code = folder.open()->get(request.get()).code;
  const auto cache = folder.open();
  const auto stale = cache->get(request.get()).code;
  const auto [fresh, layer] = cache->replace(request.get(), stale);
  REQUIRE(fresh);
  CHECK(fresh != stale);
  CHECK(layer == CodeLayer::compiler);
  CHECK(fresh->origin == CodeOrigin::compiled);
  CHECK(compiled() == 2);
  CHECK_FALSE(cache->replace(request.get(), fresh).code);
  CHECK(folder.open()->get(request.get()).code->origin == CodeOrigin::disk);
}

TEST_CASE("code cache: 32 threads that ask at once compile once") {
  CodeCacheFolder folder;
  FakeNvrtc::get().compile_time = std::chrono::milliseconds(30);
  const OwnedRequest request(kKernel);
  const auto cache = folder.open();
  std::vector<CodeCache::Code> codes(32);
  std::vector<std::thread> threads;
  for (auto& code : codes) {
    threads.emplace_back([&] { code = cache->get(request.get()).code; });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& code : codes) CHECK(code == codes[0]);
  CHECK(compiled() == 1);
  FakeNvrtc::get().compile_time = std::chrono::milliseconds(0);
}

TEST_CASE("code cache: threads that share a compile which fails are told lines of their own") {
  CodeCacheFolder folder;
  FakeNvrtc& fake = FakeNvrtc::get();
  fake.compile_result = NVRTC_ERROR_COMPILATION;
  fake.log = "kernel.cu(2): error: no\n";
  fake.compile_time = std::chrono::milliseconds(60);
  const auto cache = folder.open();
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int line = 1; line <= 400; line += 100) {
    threads.emplace_back([&, line] {
      OwnedRequest request(kKernel);
      request.source.first_line = line;
      try {
        cache->get(request.get());
      } catch (const CompileError& error) {
        const bool said = contains(error.what(), "kernel.cu:" + std::to_string(line + 1));
        if (said && error.diagnostics.at(0).line == line + 1) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 4);
  fake.compile_time = std::chrono::milliseconds(0);
}

TEST_CASE("code cache: one line for each request says who answered") {
  CodeCacheFolder folder;
  OwnedRequest request(kKernel);
  request.source.name = "app.py";
  request.source.first_line = 12;
  std::vector<std::string> lines;
  const LogLevel before = log_level();
  set_log_level(LogLevel::info);
  set_log_sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::info) lines.emplace_back(text);
  });
  const auto cache = folder.open();
  cache->get(request.get());
  cache->get(request.get());
  folder.open()->get(request.get());
  set_log_sink({});
  set_log_level(before);
  REQUIRE(lines.size() == 3);
  CHECK(contains(lines[0], "k (app.py:12): compiled with NVRTC 13.1, sm_90, 10 bytes"));
  CHECK(contains(lines[1], "memory"));
  CHECK(contains(lines[2], "disk"));
  CHECK(contains(lines[2], " ms"));
}

TEST_CASE("code cache: the process's cache follows the environment") {
  const test::TemporaryDirectory folder;
  const test::EnvironmentGuard mode("KERNWRIGHT_CACHE", "disk");
  const test::EnvironmentGuard place("KERNWRIGHT_CACHE_DIR", (folder / "here").c_str());
  const test::EnvironmentGuard limit("KERNWRIGHT_CACHE_LIMIT", "2M");
  CodeCache& cache = CodeCache::process();
  CHECK(cache.mode() == CacheMode::disk);
  CHECK(cache.disk().info().path == folder / "here");
  CHECK(cache.disk().info().limit == 2 << 20);
  CHECK(&CodeCache::process() == &cache);
  mode.set("memory");
  CHECK(CodeCache::process().mode() == CacheMode::memory);
  CHECK(CodeCache::process().disk().info().state == "off");
  mode.set("off");
  CHECK(CodeCache::process().mode() == CacheMode::off);
  mode.set("elsewhere");
  CHECK_THROWS_AS(CodeCache::process(), InvalidArgument);
}
