// Opens a file, checks it, then reads it.
#include "jit/cache/checked_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>

#include "base/format.h"
#include "base/secure_directory.h"

namespace kernwright {
namespace {

CheckedFile outcome(ReadOutcome result, std::string reason) {
  CheckedFile file;
  file.outcome = result;
  file.reason = std::move(reason);
  return file;
}

void read_opened(FileSystem& system, int descriptor, CheckedFile& file) {
  file.bytes.resize(static_cast<std::size_t>(file.status.st_size));
  const ssize_t count = read_fully(system, descriptor, file.bytes.data(), file.bytes.size());
  if (count < 0) {
    file.outcome = ReadOutcome::failed;
    file.reason = describe_failure(count);
    file.bytes.clear();
    return;
  }
  // The file became shorter while it was read; checks of its content find this.
  file.bytes.resize(static_cast<std::size_t>(count));
  file.outcome = ReadOutcome::read;
}

}  // namespace

CheckedFile read_checked(FileSystem& system, int directory, const std::string& name,
                         std::uint64_t limit, std::int64_t refresh_after) {
  // O_NONBLOCK: opening a pipe at this path must not wait.
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
  int opened = system.open(directory, name.c_str(), kFlags, 0);
  while (opened == -EINTR) opened = system.open(directory, name.c_str(), kFlags, 0);
  if (opened == -ENOENT) return {};
  if (opened == -ELOOP) return outcome(ReadOutcome::untrusted, "it is a link");
  if (opened < 0) return outcome(ReadOutcome::failed, describe_failure(opened));
  const FileHandle handle(system, opened);
  CheckedFile file;
  if (const int result = system.status(opened, file.status); result < 0) {
    return outcome(ReadOutcome::failed, describe_failure(result));
  }
  file.outcome = ReadOutcome::untrusted;
  if (!S_ISREG(file.status.st_mode)) {
    file.reason = "it is no regular file";
  } else if (static_cast<std::uint64_t>(file.status.st_size) > limit) {
    file.reason = format("it has {} bytes", file.status.st_size);
  } else {
    file.reason = distrust(file.status);
  }
  if (!file.reason.empty()) return file;
  read_opened(system, opened, file);
  if (refresh_after > 0 && file.outcome == ReadOutcome::read) {
    const std::int64_t age = static_cast<std::int64_t>(::time(nullptr)) - file.status.st_mtime;
    if (std::abs(age) > refresh_after) system.touch(opened);
  }
  return file;
}

bool remove_same(FileSystem& system, int directory, const std::string& name,
                 const struct stat& status) {
  struct stat now {};
  if (system.read_status(directory, name.c_str(), now) < 0) return false;
  const bool same = now.st_ino == status.st_ino && now.st_size == status.st_size &&
                    now.st_mtim.tv_sec == status.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == status.st_mtim.tv_nsec;
  return same && system.unlink(directory, name.c_str()) == 0;
}

}  // namespace kernwright
