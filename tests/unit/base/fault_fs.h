// The real file system, with calls failing by a test's plan.
#pragma once

#include "base/file_system.h"

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace kernwright::test {

enum class FsCall {
  open,
  close,
  read,
  read_at,
  write,
  sync,
  status,
  read_status,
  make_directory,
  rename,
  unlink,
  touch,
  list,
  try_lock,
  unlock,
};
inline constexpr int kFsCalls = 15;

class FaultFs final : public FileSystem {
 public:
  /// The `nth` call of this kind from now on returns -error; all later ones too when `stays`.
  void fail(FsCall call, int error, int nth = 1, bool stays = false);
  /// The same for the `nth` call of any kind.
  void fail_any(int error, int nth, bool stays = false);
  /// No more failures. The counts begin anew.
  void heal();
  int fired() const { return fired_; }
  int calls(FsCall call) const { return counts_[static_cast<std::size_t>(call)]; }
  /// Descriptors opened and not closed.
  int open_files() const { return open_; }

  /// The effect of a power failure: files written and not synced lose their contents.
  void lose_unsynced();

  std::size_t most_bytes = SIZE_MAX;  ///< at most so many for one read or write
  bool skips_sync = false;            ///< for speed

  int open(int directory, const char* name, int flags, mode_t mode) override;
  int close(int file) override;
  ssize_t read(int file, void* buffer, std::size_t size) override;
  ssize_t read_at(int file, void* buffer, std::size_t size, std::uint64_t offset) override;
  ssize_t write(int file, const void* from, std::size_t size) override;
  int sync(int file) override;
  int status(int file, struct stat& result) override;
  int read_status(int directory, const char* name, struct stat& result) override;
  int make_directory(int directory, const char* name, mode_t mode) override;
  int rename(int directory, const char* from, const char* to) override;
  int unlink(int directory, const char* name) override;
  int touch(int file) override;
  int list(int directory, std::vector<std::string>& names) override;
  int try_lock(int file, std::uint64_t offset) override;
  int unlock(int file, std::uint64_t offset) override;

 private:
  /// -error when this call is to fail, else 0.
  int enter(FsCall call);
  static std::string path_of(int directory, const char* name);

  struct Plan {
    int error = 0, nth = 0;
    bool stays = false;
  };
  std::array<Plan, kFsCalls> plans_;
  Plan any_;
  std::array<int, kFsCalls> counts_{};
  int total_ = 0, fired_ = 0, open_ = 0;
  std::map<int, std::string> written_;    ///< open file -> path, while not synced
  std::map<std::string, bool> unsynced_;  ///< path -> must be lost
  std::recursive_mutex mutex_;
};

/// The errors of file systems, as far as the cache may meet them.
inline constexpr int kFsErrors[] = {ENOSPC, EIO, EROFS, EACCES, EINTR, ESTALE, ENOLCK, EXDEV};

}  // namespace kernwright::test
