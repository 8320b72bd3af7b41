// Trusted directories, and the messages about others.
#include "base/secure_directory.h"

#include "unit/base/environment_guard.h"
#include "unit/base/fault_fs.h"
#include "unit/base/temporary_directory.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>

using namespace kernwright;
using namespace kernwright::test;

namespace {

bool says(const SecureDirectory& directory, const char* part) {
  INFO(directory.reason());
  return !directory && directory.reason().find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("secure directory: made with its parents, for this user alone") {
  FaultFs system;
  const TemporaryDirectory folder;
  {
    const SecureDirectory made = SecureDirectory::open(system, folder / "a/b/c");
    CHECK(static_cast<bool>(made));
    CHECK(made.reason().empty());
    for (const char* name : {"a", "a/b", "a/b/c"}) {
      struct stat status {};
      REQUIRE(::stat((folder / name).c_str(), &status) == 0);
      CHECK((status.st_mode & 07777) == 0700);
    }
    const SecureDirectory child = made.child("d");
    CHECK(static_cast<bool>(child));
    CHECK(child.path() == folder / "a/b/c/d");
    CHECK(static_cast<bool>(SecureDirectory::open(system, folder / "a/b/c/d/")));
  }
  CHECK(system.open_files() == 0);
}

TEST_CASE("secure directory: others may not write to it, nor own it") {
  FileSystem& system = FileSystem::real();
  const TemporaryDirectory folder;
  const std::string path = folder / "d";
  std::filesystem::create_directory(path);
  for (const int mode : {0755, 0700, 0500}) {
    REQUIRE(::chmod(path.c_str(), static_cast<mode_t>(mode)) == 0);
    CHECK(static_cast<bool>(SecureDirectory::open(system, path)));
  }
  for (const int mode : {0775, 0777, 0702, 01777}) {
    REQUIRE(::chmod(path.c_str(), static_cast<mode_t>(mode)) == 0);
    CHECK(says(SecureDirectory::open(system, path), "other users can write"));
  }
  struct stat status {};
  status.st_mode = S_IFREG | 0600;
  status.st_uid = ::geteuid();
  CHECK(distrust(status).empty());
  status.st_uid = 0;
  CHECK(distrust(status).empty());
  status.st_uid = ::geteuid() + 1;
  CHECK(distrust(status).find("another user") != std::string::npos);
  if (::geteuid() == 0) {
    REQUIRE(::chmod(path.c_str(), 0700) == 0);
    REQUIRE(::chown(path.c_str(), 12345, 12345) == 0);
    CHECK(says(SecureDirectory::open(system, path), "uid 12345"));
  }
}

TEST_CASE("secure directory: links and files are refused") {
  FileSystem& system = FileSystem::real();
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_directory_symlink(folder / "real", folder / "link");
  CHECK(says(SecureDirectory::open(system, folder / "link"), "link"));
  // Links above the directory are allowed: the user made them.
  CHECK(static_cast<bool>(SecureDirectory::open(system, folder / "link/d")));
  write_text(folder / "file", "x");
  CHECK(says(SecureDirectory::open(system, folder / "file"), "not a folder"));
  CHECK_FALSE(static_cast<bool>(SecureDirectory::open(system, folder / "file/d")));
  CHECK(says(SecureDirectory::open(system, "/"), "below the root"));
  CHECK(says(SecureDirectory::open(system, "/a/../"), "below the root"));
  // However the path is spelled, it is walked in its plain form.
  for (const char* spelling : {"d1", "./d1", "d1/", "d1//", "x/../d1", "//d1/.", "x/y/../../d1"}) {
    CHECK(SecureDirectory::open(system, folder / "" + spelling).path() == folder / "d1");
  }
  CHECK_FALSE(std::filesystem::exists(folder / "x"));
  CHECK(says(SecureDirectory::open(system, "relative"), "below the root"));
  CHECK(says(SecureDirectory::open(system, ""), "below the root"));
}

TEST_CASE("secure directory: a failing system is a reason, never an exception") {
  const TemporaryDirectory folder;
  for (const int error : kFsErrors) {
    FaultFs system;
    for (int nth = 1;; ++nth) {
      system.heal();
      system.fail_any(error, nth);
      const SecureDirectory directory = SecureDirectory::open(system, folder / "x/y");
      if (system.fired() == 0) {
        CHECK(static_cast<bool>(directory));
        break;
      }
      CHECK(static_cast<bool>(directory) == directory.reason().empty());
    }
    CHECK(system.open_files() == 0);
    std::filesystem::remove_all(folder / "x");
  }
  FaultFs read_only;
  read_only.fail(FsCall::make_directory, EROFS, 1, true);
  CHECK(says(SecureDirectory::open(read_only, folder / "new"), "cannot be made"));
}

TEST_CASE("secure directory: the default comes from the environment") {
  const EnvironmentGuard own("KERNWRIGHT_CACHE_DIR", "/own/folder");
  const EnvironmentGuard xdg("XDG_CACHE_HOME", "/xdg");
  const EnvironmentGuard home("HOME", "/homes/somebody");
  CHECK(default_cache_directory() == "/own/folder");
  own.set("/own/./x/../folder");
  CHECK(default_cache_directory() == "/own/folder");
  own.set("relative/folder");
  CHECK(default_cache_directory() ==
        (std::filesystem::current_path() / "relative/folder").string());
  own.set(nullptr);
  CHECK(default_cache_directory() == "/xdg/kernwright");
  xdg.set("not absolute");
  CHECK(default_cache_directory() == "/homes/somebody/.cache/kernwright");
  home.set(nullptr);
  CHECK(default_cache_directory().empty());
}

TEST_CASE("secure directory: a fixed path cannot be given to another folder") {
  FileSystem& system = FileSystem::real();
  const TemporaryDirectory folder;
  const auto inode = [](const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
  };
  const std::string open_to_all = folder / "open";
  for (const int mode : {0700, 01777, 0777, 0770}) {
    std::filesystem::remove_all(open_to_all);
    std::filesystem::create_directory(open_to_all);
    REQUIRE(::chmod(open_to_all.c_str(), static_cast<mode_t>(mode)) == 0);
    const SecureDirectory made = SecureDirectory::open(system, open_to_all + "/mine");
    REQUIRE(static_cast<bool>(made));
    const std::string path = made.fixed_path();
    const bool is_safe = mode == 0700 || mode == 01777;
    CHECK(path.starts_with("/proc/self/fd/") == !is_safe);
    const ino_t own = inode(path);
    // An attack of somebody with the right to write to the parent.
    std::filesystem::rename(open_to_all + "/mine", open_to_all + "/aside");
    std::filesystem::create_directory(open_to_all + "/mine");
    if (!is_safe) CHECK(inode(path) == own);
    // From then on no path but the handle's names the folder.
    CHECK(inode(made.fixed_path()) == own);
  }
  CHECK(SecureDirectory().fixed_path().empty());
}
