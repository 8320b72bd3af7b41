// Partial reads and writes, interruptions, and the owner of a descriptor.
#include "base/file_system.h"

#include "unit/base/fault_fs.h"
#include "unit/base/temporary_directory.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <cerrno>

using namespace kernwright;
using namespace kernwright::test;

TEST_CASE("file system: reads and writes are completed") {
  FaultFs system;
  system.most_bytes = 2;
  const TemporaryDirectory folder;
  const std::string path = folder / "f";
  {
    const FileHandle file(system, system.open(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT, 0600));
    REQUIRE(static_cast<bool>(file));
    system.fail(FsCall::write, EINTR, 3);
    CHECK(write_fully(system, file.get(), "12345", 5) == 0);
  }
  CHECK(system.open_files() == 0);
  const FileHandle file(system, system.open(AT_FDCWD, path.c_str(), O_RDONLY, 0));
  char text[10] = {};
  system.fail(FsCall::read, EINTR, 2);
  CHECK(read_fully(system, file.get(), text, sizeof text) == 5);
  CHECK(std::string(text) == "12345");
  system.fail(FsCall::read, EIO);
  CHECK(read_fully(system, file.get(), text, sizeof text) == -EIO);
}

TEST_CASE("file system: a handle closes once") {
  FaultFs system;
  const TemporaryDirectory folder;
  FileHandle first(system, system.open(AT_FDCWD, folder.path().c_str(), O_RDONLY, 0));
  FileHandle second = std::move(first);
  CHECK_FALSE(static_cast<bool>(first));
  CHECK(system.open_files() == 1);
  CHECK(second.reset() == 0);
  CHECK(second.reset() == 0);
  CHECK(system.open_files() == 0);
  CHECK_FALSE(static_cast<bool>(FileHandle(system, -EACCES)));
  CHECK(describe_failure(-ENOSPC).find("No space") != std::string::npos);
}

TEST_CASE("file system: one open file's lock keeps another one's off") {
  FileSystem& system = FileSystem::real();
  const TemporaryDirectory folder;
  const std::string path = folder / "lock";
  const FileHandle one(system, system.open(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT, 0600));
  const FileHandle other(system, system.open(AT_FDCWD, path.c_str(), O_RDWR, 0));
  CHECK(system.try_lock(one.get(), 7) == 0);
  CHECK(system.try_lock(other.get(), 7) == -EAGAIN);
  CHECK(system.try_lock(other.get(), 8) == 0);
  CHECK(system.unlock(one.get(), 7) == 0);
  CHECK(system.try_lock(other.get(), 7) == 0);
}

TEST_CASE("file system: a directory is listed anew each time") {
  FileSystem& system = FileSystem::real();
  const TemporaryDirectory folder;
  const FileHandle handle(system,
                          system.open(AT_FDCWD, folder.path().c_str(), O_RDONLY | O_DIRECTORY, 0));
  for (std::size_t count = 0; count < 3; ++count) {
    std::vector<std::string> names;
    CHECK(system.list(handle.get(), names) == 0);
    CHECK(names.size() == count);
    write_text(folder / std::to_string(count), "");
  }
}
