// When NVRTC is opened, and when its record is enough.
#include "jit/cache/compiler_finder.h"

#include <doctest/doctest.h>

#include "unit/jit/cache/code_cache_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

struct FinderFolder : CacheFolder {
  FinderFolder() : nvrtc(folder / "lib") {}

  /// As in a new process.
  std::unique_ptr<CompilerFinder> start() {
    SecureDirectory directory = SecureDirectory::open(system, folder / "compilers");
    return std::make_unique<CompilerFinder>(nvrtc.source(),
                                            CompilerRecords(system, std::move(directory)));
  }

  InstalledNvrtc nvrtc;
};

}  // namespace

TEST_CASE("compiler finder: opened once, told by its record from then on") {
  FinderFolder folder;
  const auto first = folder.start();
  CHECK(first->must_open());
  const CompilerIdentity identity = first->identity(first->search());
  CHECK(identity.version() == "13.1");
  CHECK_FALSE(first->must_open());
  CHECK(folder.nvrtc.opened == 1);
  const auto second = folder.start();
  CHECK_FALSE(second->must_open());
  CHECK(second->identity(second->search()).builtins == identity.builtins);
  CHECK(second->identity(second->search()).archs == identity.archs);
  CHECK(folder.nvrtc.opened == 1);
  const auto opened = second->service().nvrtc();
  CHECK(second->identity_of(opened, second->search()).builtins == identity.builtins);
  CHECK(folder.nvrtc.opened == 2);
  CHECK(second->recorded().size() == 1);
}

TEST_CASE("compiler finder: another search is answered anew") {
  FinderFolder folder;
  const auto first = folder.start();
  first->identity(first->search());
  const auto second = folder.start();
  second->identity(second->search());
  NvrtcSearch elsewhere = second->search();
  elsewhere.override_path = folder.folder / "nowhere/libnvrtc.so";
  second->identity(elsewhere);  // no record: it is opened
  CHECK(folder.nvrtc.opened == 2);
}

TEST_CASE("compiler finder: a missing NVRTC is an error, and looked for again") {
  FinderFolder folder;
  folder.nvrtc.is_missing = true;
  const auto finder = folder.start();
  CHECK_THROWS_AS(finder->identity(finder->search()), NvrtcNotFound);
  CHECK(finder->recorded().empty());
  folder.nvrtc.is_missing = false;
  CHECK(finder->identity(finder->search()).version() == "13.1");
}
