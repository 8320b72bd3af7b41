// Packs: written from sources and records, used without NVRTC, and never for other requests.
#include "jit/cache/pack.h"

#include <doctest/doctest.h>

#include <latch>
#include <string>
#include <vector>

#include "base/errors.h"
#include "unit/jit/cache/code_cache_fixture.h"
#include "unit/jit/jit_fixture.h"
#include "unit/jit/watched_service.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

const std::string kScale =
    "__global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }\n"
    "template <class T> __global__ void fill(T* x, T a) { x[threadIdx.x] = a; }\n";

PackItem item(const std::string& text, std::vector<std::string> names = {}) {
  PackItem result;
  result.source.text = text;
  result.source.name = "/somewhere/app.py";
  result.names = std::move(names);
  return result;
}

/// Writes with the NVRTC at hand.
std::vector<PackEntry> write(const std::string& path, const std::vector<PackItem>& items,
                             const std::vector<std::string>& archs) {
  use_test_nvrtc();
  return write_pack(path, items, archs);
}

/// Asks for a device of this compute capability; its cache has no NVRTC.
struct Asker : CodeCacheFolder {
  Asker() { nvrtc.is_missing = true; }

  CodeCache::Code ask(const std::string& text, int capability, std::vector<std::string> names = {},
                      bool simulated = false) {
    OwnedRequest request(text);
    request.source.name = "elsewhere.py";
    request.source.first_line = 30;
    request.options = options;
    request.refresh();
    DeviceTarget device;
    device.compute_capability = capability;
    device.is_simulated = simulated;
    request.target.arch.clear();
    request.target.device = device;
    CodeRequest wanted = request.get();
    wanted.names = std::move(names);
    wanted.with_lines = simulated;
    return open(CacheMode::memory)->get(wanted).code;
  }

  ProgramOptions options;
};

struct PackGuard {
  ~PackGuard() { drop_pack(); }
};

}  // namespace

TEST_CASE("pack: kernels of all architectures, used with no NVRTC at all") {
  const test::TemporaryDirectory folder;
  const std::string path = folder / "kernels.kwpack";
  const auto entries =
      write(path, {item(kScale, {"fill<float>", "scale"})}, {"sm_80", "sm_90", "sim"});
  CHECK(entries.size() == 6);
  CHECK(entries[0].source == "app.py");
  const PackGuard guard;
  use_pack(path);
  Asker asker;
  const auto code = asker.ask(kScale, 90);
  CHECK(code->origin == CodeOrigin::pack);
  CHECK(code->arch == "sm_90");
  CHECK(code->kind == CodeKind::cubin);
  CHECK(code->kernel("scale").to_string() == "scale(float* x, float a)");
  CHECK(asker.ask(kScale, 90) == code);  // one object, so one module
  CHECK(asker.ask(kScale, 80)->arch == "sm_80");
  CHECK(asker.ask(kScale, 80, {"fill<float>"})->kernel("fill<float>").parameters.size() == 2);
  CHECK(asker.ask(kScale, 80, {}, true)->kind == CodeKind::ptx);
}

TEST_CASE("pack: what it lacks is named when there is no NVRTC to compile it") {
  const test::TemporaryDirectory folder;
  const std::string path = folder / "kernels.kwpack";
  write(path, {item(kScale)}, {"sm_80", "sm_90"});
  const PackGuard guard;
  use_pack(path);
  Asker asker;
  const std::string arch = thrown_by<NvrtcNotFound>([&] { asker.ask(kScale, 100); }).what();
  CHECK(contains(arch, "scale"));
  CHECK(contains(arch, "for sm_100"));
  CHECK(contains(arch, "holds the source for sm_80, sm_90"));
  CHECK(contains(arch, path));
  CHECK(contains(arch, "NVRTC was not found"));
  const std::string name =
      thrown_by<NvrtcNotFound>([&] { asker.ask(kScale, 90, {"fill<int>"}); }).what();
  CHECK(contains(name, "fill<int>"));
  const std::string text = thrown_by<NvrtcNotFound>([&] { asker.ask(kScale + " ", 90); }).what();
  CHECK(contains(text, "does not hold this source"));
  asker.options.fast_math = true;
  CHECK_THROWS_AS(asker.ask(kScale, 90), NvrtcNotFound);
  // With an NVRTC the rest is compiled.
  asker.options = {};
  asker.nvrtc.is_missing = false;
  asker.nvrtc.loaded.archs = {80, 90, 100};
  FakeNvrtc::get().ptx = ".visible .entry scale(){ ret; }\n";
  CHECK(asker.ask(kScale, 100)->origin == CodeOrigin::compiled);
  CHECK(asker.ask(kScale, 90)->origin == CodeOrigin::pack);
}

TEST_CASE("pack: equal inputs give equal bytes, whatever their order") {
  const test::TemporaryDirectory folder;
  const PackItem one = item(kScale, {"fill<float>"}), other = item(kScale + "// other\n");
  PackItem moved = other;
  moved.source.first_line = 50;
  moved.source.name = "/another/folder/app.py";
  write(folder / "a", {one, other}, {"sm_80", "sm_90"});
  CodeCache::process().clear_memory();
  write(folder / "b", {moved, one, other}, {"sm_90", "sm_80", "sm_90"});
  const std::string bytes = test::read_text(folder / "a");
  CHECK_FALSE(bytes.empty());
  CHECK(bytes == test::read_text(folder / "b"));
  CHECK(test::names_in(folder.path()).size() == 2);
}

TEST_CASE("pack: codes compile at the same time, and their order of ending is not in the bytes") {
  if (one_processor()) return;
  const test::TemporaryDirectory folder;
  const std::string number = "// " + new_number() + "\n";
  const std::vector<PackItem> items{item(kScale + number), item(kScale + number + "// second\n")};
  std::vector<std::string> files;
  for (const bool first_waits : {true, false}) {
    std::latch other(1);
    const auto is_second = [](const std::string& text) { return contains(text, "// second"); };
    const CompileWatch watch(
        [&](const std::string& text) {
          if (is_second(text) != first_waits) other.wait();
        },
        [&](const std::string& text) {
          if (is_second(text) == first_waits) other.count_down();
        });
    CodeCache::process().clear_memory();
    write(folder / "p", items, {"sm_80"});
    CHECK(watch.service.compiles == 2);
    files.push_back(test::read_text(folder / "p"));
  }
  CHECK_FALSE(files[0].empty());
  CHECK(files[0] == files[1]);
}

TEST_CASE("pack: of several errors that of the first code is told, whichever ended first") {
  if (one_processor()) return;
  const test::TemporaryDirectory folder;
  const std::string number = "// " + new_number() + "\n";
  std::vector<PackItem> items{item(kScale + number), item(number + "early oops;"),
                              item(number + "late oops;")};
  for (int i = 0; i < 40; ++i) items.push_back(item(kScale + number + std::to_string(i)));
  std::latch late(1);
  const CompileWatch watch(
      [&](const std::string& text) {
        if (contains(text, "early")) late.wait();
      },
      [&](const std::string& text) {
        if (contains(text, "late")) late.count_down();
      });
  const auto told = thrown_by<CompileError>([&] { write(folder / "p", items, {"sm_80"}); });
  CHECK(contains(told.what(), "early"));
  CHECK_FALSE(contains(told.what(), "late"));
  CHECK(test::names_in(folder.path()).empty());
}

TEST_CASE("pack: files of the golden kind still answer") {
  // If this fails, shipped packs are of no use any more: raise the format's version (or kSchema of
  // the keys) knowingly, and store a new file beside this one.
  const std::string path = std::string(TEST_GOLDEN_FOLDER) + "/pack_object_v2.bin";
  if (std::getenv("KERNWRIGHT_WRITE_GOLDEN") != nullptr) write(path, {item(kScale)}, {"sm_80"});
  const PackGuard guard;
  use_pack(path);
  const auto entries = packs_in_use().at(0)->entries();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].kernels == std::vector<std::string>{"scale"});
  CHECK(entries[0].source == "app.py");
  CHECK(Asker().ask(kScale, 80)->origin == CodeOrigin::pack);
  // Earlier ones are refused as a whole, not passed over one by one.
  const auto error =
      thrown_by<Error>([] { use_pack(std::string(TEST_GOLDEN_FOLDER) + "/pack_v1.bin"); });
  CHECK(contains(error.what(), "format version 1"));
}

TEST_CASE("pack: damaged and missing files are refused whole") {
  const test::TemporaryDirectory folder;
  const std::string path = folder / "p";
  write(path, {item(kScale)}, {"sm_80"});
  const std::string whole = test::read_text(path);
  CHECK(Pack::load(path)->entries().size() == 1);
  for (std::size_t at = 0; at < whole.size(); at += whole.size() < 20000 ? 61 : 601) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    test::write_text(path, flipped);
    REQUIRE_THROWS_AS(Pack::load(path), Error);
    test::write_text(path, whole.substr(0, at));
    REQUIRE_THROWS_AS(Pack::load(path), Error);
  }
  CHECK(contains(thrown_by<Error>([&] { use_pack(path); }).what(), path));
  CHECK(contains(thrown_by<Error>([&] { use_pack(folder / "none"); }).what(), "none"));
  CHECK_THROWS_AS(use_pack(folder.path()), Error);
  CHECK(packs_in_use().empty());
}

TEST_CASE("pack: rows come along, and a pack without any is as before") {
  const test::TemporaryDirectory folder;
  write(folder / "plain", {item(kScale)}, {"sm_80"});
  const std::vector<PackItem> items = {item(kScale)};
  const std::vector<std::string> archs = {"sm_80"};
  write_pack(folder / "rows", items, archs, {}, "a row\nanother\n");
  write_pack(folder / "none", items, archs, {}, "");
  CHECK(Pack::load(folder / "rows")->rows() == "a row\nanother\n");
  CHECK(Pack::load(folder / "rows")->entries().size() == 1);
  CHECK(Pack::load(folder / "plain")->rows().empty());
  CHECK(test::read_text(folder / "none") == test::read_text(folder / "plain"));
  const std::string whole = test::read_text(folder / "rows");
  for (std::size_t cut = whole.size() - 40; cut < whole.size(); ++cut) {
    test::write_text(folder / "rows", whole.substr(0, cut));
    REQUIRE_THROWS_AS(Pack::load(folder / "rows"), Error);
  }
}

TEST_CASE("pack: nothing to do, unknown architectures and unwritable places are errors") {
  const test::TemporaryDirectory folder;
  CHECK_THROWS_AS(write(folder / "p", {}, {"sm_80"}), InvalidArgument);
  CHECK_THROWS_AS(write(folder / "p", {item(kScale)}, {}), InvalidArgument);
  CHECK_THROWS_AS(write(folder / "p", {item(kScale)}, {"sm80"}), InvalidArgument);
  CHECK_THROWS_AS(write(folder / "p", {item(kScale)}, {"sm_999"}), InvalidArgument);
  CHECK_THROWS_AS(write(folder / "p", {item("__global__ void k() { oops; }")}, {"sm_80"}),
                  CompileError);
  CHECK_THROWS_AS(write(folder / "no/such/p", {item(kScale)}, {"sm_80"}), Error);
  CHECK(test::names_in(folder.path()).empty());
}

TEST_CASE("pack: the user's headers may be missing, not different") {
  const test::TemporaryDirectory folder;
  const std::string header = folder / "include/t.h";
  test::write_text(header, "typedef float T;\n");
  PackItem one = item("#include <t.h>\n__global__ void k(T* x) { *x = 1; }\n");
  one.options.include_dirs = {folder / "include"};
  write(folder / "p", {one}, {"sm_90"});
  const PackGuard guard;
  use_pack(folder / "p");
  Asker asker;
  asker.options.include_dirs = {folder / "include"};
  CHECK(asker.ask(one.source.text, 90)->origin == CodeOrigin::pack);
  test::write_text(header, "typedef double T;\n");
  CHECK_THROWS_AS(asker.ask(one.source.text, 90), NvrtcNotFound);
  std::filesystem::remove(header);
  asker.options.include_dirs = {};
  CHECK(asker.ask(one.source.text, 90)->origin == CodeOrigin::pack);
}
