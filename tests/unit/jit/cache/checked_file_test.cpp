// Reading files of unknown origin.
#include "jit/cache/checked_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "unit/jit/cache/cache_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;
using test::FsCall;

namespace {

struct Folder : CacheFolder {
  Folder() : handle(system, system.open(AT_FDCWD, folder.path().c_str(), O_RDONLY, 0)) {}
  CheckedFile read(std::uint64_t limit = 100, std::int64_t refresh = 0) {
    return read_checked(system, handle.get(), "f", limit, refresh);
  }
  std::string path() const { return folder / "f"; }
  FileHandle handle;
};

}  // namespace

TEST_CASE("checked file: read whole, absent, too large") {
  Folder folder;
  CHECK(folder.read().outcome == ReadOutcome::absent);
  test::write_text(folder.path(), "12345");
  ::chmod(folder.path().c_str(), 0600);
  CHECK(folder.read().outcome == ReadOutcome::read);
  CHECK(folder.read().bytes.size() == 5);
  CHECK(folder.read(5).outcome == ReadOutcome::read);
  CHECK(folder.read(4).outcome == ReadOutcome::untrusted);
  CHECK(folder.read(4).reason.find("5 bytes") != std::string::npos);
  test::write_text(folder.path(), "");
  CHECK(folder.read().outcome == ReadOutcome::read);
  CHECK(folder.system.open_files() == 1);
}

TEST_CASE("checked file: only a regular file of one's own is opened") {
  Folder folder;
  test::write_text(folder.folder / "elsewhere", "x");
  std::filesystem::create_symlink(folder.folder / "elsewhere", folder.path());
  CHECK(folder.read().reason == "it is a link");
  std::filesystem::remove(folder.path());
  std::filesystem::create_directory(folder.path());
  CHECK(folder.read().reason == "it is no regular file");
  std::filesystem::remove(folder.path());
  REQUIRE(::mkfifo(folder.path().c_str(), 0600) == 0);
  CHECK(folder.read().reason == "it is no regular file");
  std::filesystem::remove(folder.path());
  test::write_text(folder.path(), "x");
  ::chmod(folder.path().c_str(), 0620);
  CHECK(folder.read().outcome == ReadOutcome::untrusted);
  CHECK(folder.read().bytes.empty());
}

TEST_CASE("checked file: a failing system tells nothing about the file") {
  Folder folder;
  test::write_text(folder.path(), "12345");
  ::chmod(folder.path().c_str(), 0600);
  for (const FsCall call : {FsCall::open, FsCall::status, FsCall::read}) {
    folder.system.fail(call, ESTALE);
    CHECK(folder.read().outcome == ReadOutcome::failed);
    CHECK(folder.read().outcome == ReadOutcome::read);
  }
  set_age(folder.path(), 500);
  folder.system.fail(FsCall::touch, EROFS);
  CHECK(folder.read(100, 60).outcome == ReadOutcome::read);
  CHECK(folder.system.calls(FsCall::touch) == 1);
}

TEST_CASE("checked file: only the file that was read is removed") {
  Folder folder;
  test::write_text(folder.path(), "one");
  ::chmod(folder.path().c_str(), 0600);
  const CheckedFile file = folder.read();
  std::filesystem::rename(folder.path(), folder.folder / "moved");
  CHECK_FALSE(remove_same(folder.system, folder.handle.get(), "f", file.status));
  test::write_text(folder.path(), "two");
  CHECK_FALSE(remove_same(folder.system, folder.handle.get(), "f", file.status));
  CHECK(remove_same(folder.system, folder.handle.get(), "moved", file.status));
  CHECK(test::names_in(folder.folder.path()) == std::vector<std::string>{"f"});
}
