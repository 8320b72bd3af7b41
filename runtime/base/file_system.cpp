// The real system calls, and the loops around partial reads and writes.
#include "base/file_system.h"

#include "base/format.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace kernwright {
namespace {

template <typename Result>
Result checked(Result result) noexcept {
  return result < 0 ? static_cast<Result>(-errno) : result;
}

int lock_call(int file, std::uint64_t offset, short kind) {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(offset);
  range.l_len = 1;
#ifdef F_OFD_SETLK
  const int result = checked(::fcntl(file, F_OFD_SETLK, &range));
#else
  const int result = -ENOLCK;
#endif
  return result == -EACCES ? -EAGAIN : result;
}

class RealFileSystem final : public FileSystem {
 public:
  int open(int directory, const char* name, int flags, mode_t mode) override {
    return checked(::openat(directory, name, flags | O_CLOEXEC, mode));
  }
  int close(int file) override { return checked(::close(file)); }
  ssize_t read(int file, void* buffer, std::size_t size) override {
    return checked(::read(file, buffer, size));
  }
  ssize_t read_at(int file, void* buffer, std::size_t size, std::uint64_t offset) override {
    return checked(::pread(file, buffer, size, static_cast<off_t>(offset)));
  }
  ssize_t write(int file, const void* from, std::size_t size) override {
    return checked(::write(file, from, size));
  }
  int sync(int file) override { return checked(::fsync(file)); }
  int status(int file, struct stat& result) override { return checked(::fstat(file, &result)); }
  int read_status(int directory, const char* name, struct stat& result) override {
    return checked(::fstatat(directory, name, &result, AT_SYMLINK_NOFOLLOW));
  }
  int make_directory(int directory, const char* name, mode_t mode) override {
    return checked(::mkdirat(directory, name, mode));
  }
  int rename(int directory, const char* from, const char* to) override {
    return checked(::renameat(directory, from, directory, to));
  }
  int unlink(int directory, const char* name) override {
    return checked(::unlinkat(directory, name, 0));
  }
  int touch(int file) override { return checked(::futimens(file, nullptr)); }
  int list(int directory, std::vector<std::string>& names) override {
    // A descriptor of its own: the position of a directory belongs to the open file.
    const int reopened = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (reopened < 0) return -errno;
    DIR* const stream = ::fdopendir(reopened);
    if (stream == nullptr) {
      const int error = errno;
      ::close(reopened);
      return -error;
    }
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
      errno = 0;
    }
    const int error = errno;
    ::closedir(stream);
    return -error;
  }
  int try_lock(int file, std::uint64_t offset) override { return lock_call(file, offset, F_WRLCK); }
  int unlock(int file, std::uint64_t offset) override { return lock_call(file, offset, F_UNLCK); }
};

}  // namespace

FileSystem& FileSystem::real() noexcept {
  static auto* const instance = new RealFileSystem;
  return *instance;
}

FileHandle::FileHandle(FileHandle&& other) noexcept
    : system_(other.system_), file_(std::exchange(other.file_, -1)) {}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(system_, other.system_);
  std::swap(file_, other.file_);
  return *this;
}

int FileHandle::reset() noexcept {
  if (file_ < 0) return 0;
  return system_->close(std::exchange(file_, -1));
}

ssize_t read_fully(FileSystem& system, int file, void* buffer, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = system.read(file, static_cast<char*>(buffer) + done, size - done);
    if (count == -EINTR) continue;
    if (count < 0) return count;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return static_cast<ssize_t>(done);
}

int write_fully(FileSystem& system, int file, const void* from, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = system.write(file, static_cast<const char*>(from) + done, size - done);
    if (count == -EINTR) continue;
    if (count < 0) return static_cast<int>(count);
    if (count == 0) return -EIO;
    done += static_cast<std::size_t>(count);
  }
  return 0;
}

std::string describe_failure(ssize_t result) {
  const int code = static_cast<int>(-result);
  return format("{} (errno {})", std::generic_category().message(code), code);
}

}  // namespace kernwright
