// Folders for temporary files: private, and gone with their process.
#include "jit/compile/process_folder.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;
namespace fs = std::filesystem;

namespace {

/// Runs `body` in a child and its exit handlers by exit(); its exit status.
template <typename Body>
int in_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) std::exit(body());
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

/// Points $TMPDIR elsewhere for a scope.
class TmpDir {
 public:
  explicit TmpDir(const fs::path& path) { ::setenv("TMPDIR", path.c_str(), 1); }
  ~TmpDir() { ::unsetenv("TMPDIR"); }
};

}  // namespace

TEST_CASE("process folder: mode 0700, removed by the destructor with all in it") {
  std::string path;
  {
    const ProcessFolder folder("test");
    path = folder.path();
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
    const std::string inner = folder.subfolder("inner");
    CHECK(folder.subfolder("inner") == inner);
    std::ofstream(inner + "/file") << "text";
    CHECK(fs::exists(inner + "/file"));
  }
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("process folder: below one that others can write to it is used by its handle") {
  const TemporaryFolder root;
  REQUIRE(::chmod(root.path().c_str(), 0777) == 0);
  const TmpDir here(root.path());
  {
    const ProcessFolder folder("test");
    CHECK(folder.path().starts_with("/proc/self/fd/"));
    for (const auto& entry : fs::directory_iterator(root.path())) {
      fs::rename(entry.path(), root.path() / "aside");
      fs::create_directory(entry.path());  // of somebody else
      break;
    }
    std::ofstream(folder.path() + "/file") << "text";
    CHECK(fs::exists(root.path() / "aside/file"));
  }
  {
    REQUIRE(::chmod(root.path().c_str(), 01777) == 0);
    CHECK(ProcessFolder("test").path().starts_with(root.path().string()));
  }
}

// A sanitizer has its own say about the exit of a forked child.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("process folder: exit removes what was never destroyed, and leaves the parent's alone") {
  const TemporaryFolder root;
  const TmpDir use(root.path());
  const ProcessFolder mine("parent");
  const int status = in_child([&] {
    static const auto* leaked = new ProcessFolder("child");
    return fs::exists(leaked->path()) && fs::exists(mine.path()) ? 0 : 1;
  });
  CHECK(status == 0);
  CHECK(fs::exists(mine.path()));
  CHECK(std::distance(fs::directory_iterator(root.path()), fs::directory_iterator()) == 1);
}
#endif

TEST_CASE("process folder: no place for it is no error") {
  const TmpDir use("/proc/none");
  const ProcessFolder folder("test");
  CHECK(folder.path().empty());
  CHECK(folder.subfolder("inner").empty());
}

TEST_CASE("process folder: leftovers of processes that ended are removed after a day") {
  const TemporaryFolder root;
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  const auto name = [&](pid_t pid, const char* rest) {
    return root.path() / ("kernwright-" + std::to_string(pid) + rest);
  };
  const fs::path old_one = name(gone, "-pch-1"), young = name(gone, "-pch-2"),
                 alive = name(::getpid(), "-pch-3"), other = root.path() / "kernwright-x-pch";
  for (const fs::path& path : {old_one, young, alive, other}) {
    fs::create_directories(path / "inner");
    const timeval past{std::time(nullptr) - 2 * 24 * 3600, 0};
    const timeval times[2] = {past, past};
    if (path != young) REQUIRE(::utimes(path.c_str(), times) == 0);
  }
  remove_leftover_folders(root.path().string());
  CHECK_FALSE(fs::exists(old_one));
  CHECK(fs::exists(young));
  CHECK(fs::exists(alive));
  CHECK(fs::exists(other));
}
