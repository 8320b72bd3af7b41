// Files appear whole or not at all, with a failure at each step.
#include "base/atomic_file.h"

#include "base/fault_point.h"
#include "unit/base/child_process.h"
#include "unit/base/environment_guard.h"
#include "unit/base/fault_fs.h"
#include "unit/base/temporary_directory.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/time.h>

#include <cerrno>

using namespace kernwright;
using namespace kernwright::test;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// The folder, open.
struct Opened {
  explicit Opened(FileSystem& system) : handle(system, -1) {
    handle = FileHandle(FileSystem::real(), ::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY));
  }
  TemporaryDirectory folder;
  FileHandle handle;
};

int write(FaultFs& system, const Opened& opened, std::string_view text) {
  return write_atomically(system, opened.handle.get(), "f", bytes_of(text));
}

void age(const std::string& path, std::time_t seconds) {
  const std::time_t moment = ::time(nullptr) - seconds;
  const timeval times[2] = {{moment, 0}, {moment, 0}};
  REQUIRE(::utimes(path.c_str(), times) == 0);
}

}  // namespace

TEST_CASE("atomic file: written, private, replaced") {
  FaultFs system;
  const Opened opened(system);
  CHECK(write(system, opened, "one") == 0);
  CHECK(read_text(opened.folder / "f") == "one");
  struct stat status {};
  REQUIRE(::stat((opened.folder / "f").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  CHECK(write(system, opened, "") == 0);
  CHECK(read_text(opened.folder / "f").empty());
  CHECK(names_in(opened.folder.path()).size() == 1);
  CHECK(system.open_files() == 0);
}

TEST_CASE("atomic file: short writes and interruptions are gone through") {
  FaultFs system;
  system.most_bytes = 3;
  const Opened opened(system);
  system.fail(FsCall::write, EINTR, 2);
  CHECK(write(system, opened, "a longer text") == 0);
  CHECK(read_text(opened.folder / "f") == "a longer text");
  system.heal();
  for (const FsCall call : {FsCall::open, FsCall::sync, FsCall::close}) {
    system.fail(call, EINTR);
    CHECK(write(system, opened, "again") == 0);
    CHECK(system.fired() == 1);
    system.heal();
  }
}

TEST_CASE("atomic file: any failure leaves the old file and nothing else") {
  FaultFs system;
  system.skips_sync = true;
  system.most_bytes = 4;
  const Opened opened(system);
  REQUIRE(write(system, opened, "old") == 0);
  for (const int error : kFsErrors) {
    if (error == EINTR) continue;
    for (int nth = 1;; ++nth) {
      system.heal();
      system.fail_any(error, nth);
      const int result = write(system, opened, "new contents");
      if (system.fired() == 0) {
        CHECK(result == 0);
        CHECK(nth > 6);
        break;
      }
      CAPTURE(error);
      CAPTURE(nth);
      CHECK(result == -error);
      CHECK(read_text(opened.folder / "f") == "old");
      CHECK(names_in(opened.folder.path()) == std::vector<std::string>{"f"});
      CHECK(system.open_files() == 0);
    }
    system.heal();
    REQUIRE(write(system, opened, "old") == 0);
  }
}

TEST_CASE("atomic file: what was renamed survives a loss of power") {
  FaultFs system;
  const Opened opened(system);
  REQUIRE(write(system, opened, "contents") == 0);
  system.lose_unsynced();
  CHECK(read_text(opened.folder / "f") == "contents");
}

TEST_CASE("atomic file: a link at the name is replaced, not followed") {
  FaultFs system;
  const Opened opened(system);
  write_text(opened.folder / "elsewhere", "untouched");
  std::filesystem::create_symlink(opened.folder / "elsewhere", opened.folder / "f");
  CHECK(write(system, opened, "new") == 0);
  CHECK(read_text(opened.folder / "elsewhere") == "untouched");
  CHECK_FALSE(std::filesystem::is_symlink(opened.folder / "f"));
}

TEST_CASE("atomic file: killed at any place, it leaves at most one temporary file") {
  for (const char* place :
       {"atomic_file.opened", "atomic_file.written", "atomic_file.synced", "atomic_file.renamed"}) {
    CAPTURE(place);
    FaultFs system;
    const Opened opened(system);
    REQUIRE(write(system, opened, "old") == 0);
    const pid_t child = start_child([&] {
      const EnvironmentGuard guard("KERNWRIGHT_FAULT_KILL", place);
      return write(system, opened, "new");
    });
    CHECK(wait_for(child) == kFaultKillStatus);
    const bool renamed = std::string(place) == "atomic_file.renamed";
    CHECK(read_text(opened.folder / "f") == (renamed ? "new" : "old"));
    CHECK(names_in(opened.folder.path()).size() == (renamed ? 1 : 2));
    CHECK(remove_stale_temporaries(system, opened.handle.get()) == (renamed ? 0 : 1));
    CHECK(names_in(opened.folder.path()).size() == 1);
  }
}

TEST_CASE("atomic file: temporary files of the living stay for an hour") {
  FaultFs system;
  const Opened opened(system);
  const std::string name = ".tmp-" + std::to_string(::getpid()) + "-0123";
  write_text(opened.folder / name, "x");
  CHECK(is_temporary_name(name));
  CHECK_FALSE(is_temporary_name("f"));
  CHECK(remove_stale_temporaries(system, opened.handle.get()) == 0);
  age(opened.folder / name, 4000);
  CHECK(remove_stale_temporaries(system, opened.handle.get()) == 1);
  write_text(opened.folder / ".tmp-oddly named", "x");
  CHECK(remove_stale_temporaries(system, opened.handle.get()) == 0);
}

TEST_CASE("fault point: a callback is told each place") {
  FaultFs system;
  const Opened opened(system);
  std::vector<std::string> places;
  set_fault_callback([&](std::string_view place) { places.emplace_back(place); });
  write(system, opened, "x");
  set_fault_callback({});
  write(system, opened, "x");
  CHECK(places == std::vector<std::string>{"atomic_file.opened", "atomic_file.written",
                                           "atomic_file.synced", "atomic_file.renamed"});
}
