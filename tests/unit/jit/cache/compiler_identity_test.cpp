// Identities of NVRTC and their records.
#include "jit/cache/compiler_identity.h"

#include <doctest/doctest.h>

#include "unit/jit/cache/code_cache_fixture.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

struct RecordFolder : CacheFolder {
  CompilerRecords open() { return {system, SecureDirectory::open(system, folder / "compilers")}; }
};

}  // namespace

TEST_CASE("compiler identity: version, architectures and contents of the builtins") {
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    const CompilerIdentity identity = identify(nvrtc);
    CHECK(identity.version() == nvrtc.version());
    CHECK(identity.archs == nvrtc.archs);
    CHECK(identity.library_size == std::filesystem::file_size(nvrtc.path));
    CHECK(identity.builtins == sha256(test::read_text(nvrtc.builtins_path)));
  }
  CHECK(identify(LoadedNvrtc{}).builtins == identify(LoadedNvrtc{}).builtins);
}

TEST_CASE("compiler records: found while every file is as it was") {
  RecordFolder folder;
  InstalledNvrtc nvrtc(folder.folder / "lib");
  const NvrtcSearch search = nvrtc.source().search();
  const CompilerRecords records = folder.open();
  CHECK_FALSE(records.find(search).has_value());
  const CompilerIdentity identity = identify(nvrtc.loaded);
  records.store(search, identity);
  const auto found = folder.open().find(search);
  REQUIRE(found.has_value());
  CHECK(found->version() == "13.1");
  CHECK(found->archs == identity.archs);
  CHECK(found->builtins == identity.builtins);
  CHECK(found->library_path == nvrtc.library);
  CHECK(found->builtins_path == nvrtc.loaded.builtins_path);
  test::write_text(nvrtc.library, "another, of another size: times may be equal");
  CHECK_FALSE(records.find(search).has_value());
  records.store(search, identity);
  CHECK(records.find(search).has_value());
  std::filesystem::remove(nvrtc.loaded.builtins_path);
  CHECK_FALSE(records.find(search).has_value());
  CHECK(records.all().size() == 1);  // of use where there is no NVRTC at all
}

TEST_CASE("compiler records: damaged ones are as good as none") {
  RecordFolder folder;
  InstalledNvrtc nvrtc(folder.folder / "lib");
  const NvrtcSearch search = nvrtc.source().search();
  const CompilerRecords records = folder.open();
  records.store(search, identify(nvrtc.loaded));
  const std::string path =
      folder.folder / "compilers/" + test::names_in(folder.folder / "compilers").at(0);
  const std::string whole = test::read_text(path);
  for (std::size_t bit = 0; bit < whole.size() * 8; bit += 5) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    test::write_text(path, flipped);
    REQUIRE_FALSE(records.find(search).has_value());
  }
  for (std::size_t length = 0; length < whole.size(); length += 3) {
    test::write_text(path, whole.substr(0, length));
    REQUIRE_FALSE(records.find(search).has_value());
  }
  CHECK(records.all().empty());
  records.store(search, identify(nvrtc.loaded));
  CHECK(records.find(search).has_value());
}

TEST_CASE("compiler records: without a folder nothing happens") {
  const CompilerRecords records(FileSystem::real(), SecureDirectory());
  records.store({}, {});
  CHECK_FALSE(records.find({}).has_value());
  CHECK(records.all().empty());
}

TEST_CASE("nvrtc candidates: the first file of the search, without opening it") {
  const TemporaryFolder folder;
  NvrtcSearch search;
  search.system_loader = false;
  CHECK(first_nvrtc_candidate(search).empty());
  search.toolkits = {folder.path().string()};
  CHECK(first_nvrtc_candidate(search).empty());
  const auto old = folder.write("lib64/libnvrtc.so.12", "no library at all");
  CHECK(first_nvrtc_candidate(search) == old.string());
  const auto newer = folder.write("lib64/libnvrtc.so.13", "");
  CHECK(first_nvrtc_candidate(search) == newer.string());
  const auto wheel = folder.write("site/nvidia/cu13/lib/libnvrtc.so.13", "");
  search.site_packages = {(folder.path() / "site").string()};
  CHECK(first_nvrtc_candidate(search) == wheel.string());
  search.override_path = old.string();
  CHECK(first_nvrtc_candidate(search) == old.string());
  search.override_path = (folder.path() / "nothing").string();
  CHECK(first_nvrtc_candidate(search).empty());
}
