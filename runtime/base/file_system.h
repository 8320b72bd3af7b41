// The system calls of the cache, behind one seam: tests can make each of them fail.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace kernwright {

/// Every call returns a value >= 0 (a descriptor, a count, 0), or -errno. Calls that a signal
/// interrupted may return -EINTR. Names are relative to an open directory. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// openat(); O_CLOEXEC is always added.
  virtual int open(int directory, const char* name, int flags, mode_t mode) = 0;
  virtual int close(int file) = 0;
  virtual ssize_t read(int file, void* buffer, std::size_t size) = 0;
  /// At that place, whatever the file's position is.
  virtual ssize_t read_at(int file, void* buffer, std::size_t size, std::uint64_t offset) = 0;
  virtual ssize_t write(int file, const void* from, std::size_t size) = 0;
  virtual int sync(int file) = 0;
  virtual int status(int file, struct stat& result) = 0;
  /// The status of the name itself; links are not followed.
  virtual int read_status(int directory, const char* name, struct stat& result) = 0;
  virtual int make_directory(int directory, const char* name, mode_t mode) = 0;
  /// Within one directory.
  virtual int rename(int directory, const char* from, const char* to) = 0;
  virtual int unlink(int directory, const char* name) = 0;
  /// Sets the time of last use (mtime) to now.
  virtual int touch(int file) = 0;
  /// Names in the directory without "." and "..", in no order.
  virtual int list(int directory, std::vector<std::string>& names) = 0;
  /// Locks one byte at `offset` for this open file; -EAGAIN when another one holds it.
  virtual int try_lock(int file, std::uint64_t offset) = 0;
  virtual int unlock(int file, std::uint64_t offset) = 0;

  /// The system itself.
  static FileSystem& real() noexcept;
};

/// Owns a descriptor of a FileSystem. Movable.
class FileHandle {
 public:
  FileHandle() = default;
  FileHandle(FileSystem& system, int file) : system_(&system), file_(file) {}
  ~FileHandle() { reset(); }
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&& other) noexcept;

  int get() const noexcept { return file_; }
  explicit operator bool() const noexcept { return file_ >= 0; }
  /// Closes; 0 or -errno of the close.
  int reset() noexcept;
  /// Gives the descriptor to the caller.
  int release() noexcept { return std::exchange(file_, -1); }

 private:
  FileSystem* system_ = nullptr;
  int file_ = -1;
};

/// Reads until `size` bytes are there or the file ends; the count or -errno. EINTR is repeated.
ssize_t read_fully(FileSystem& system, int file, void* buffer, std::size_t size);
/// Writes all; 0 or -errno.
int write_fully(FileSystem& system, int file, const void* from, std::size_t size);

/// "Permission denied (errno 13)" for a result of -EACCES.
std::string describe_failure(ssize_t result);

}  // namespace kernwright
