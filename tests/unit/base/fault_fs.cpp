// Counts the calls, fails the planned ones and hands the rest on.
#include "unit/base/fault_fs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace kernwright::test {

namespace {

bool hits(int count, int nth, bool stays) {
  return nth > 0 && (stays ? count >= nth : count == nth);
}

}  // namespace

void FaultFs::fail(FsCall call, int error, int nth, bool stays) {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(call);
  plans_[index] = {error, counts_[index] + nth, stays};
}

void FaultFs::fail_any(int error, int nth, bool stays) {
  const std::lock_guard lock(mutex_);
  any_ = {error, total_ + nth, stays};
}

void FaultFs::heal() {
  const std::lock_guard lock(mutex_);
  plans_ = {};
  any_ = {};
  counts_ = {};
  total_ = fired_ = 0;
}

int FaultFs::enter(FsCall call) {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(call);
  const int count = ++counts_[index];
  ++total_;
  int error = 0;
  if (hits(count, plans_[index].nth, plans_[index].stays)) error = plans_[index].error;
  if (hits(total_, any_.nth, any_.stays)) error = any_.error;
  if (error != 0) ++fired_;
  return -error;
}

std::string FaultFs::path_of(int directory, const char* name) {
  std::error_code error;
  const auto folder =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(directory), error);
  return error ? std::string(name) : (folder / name).string();
}

void FaultFs::lose_unsynced() {
  const std::lock_guard lock(mutex_);
  for (const auto& [path, lost] : unsynced_) {
    if (lost && std::filesystem::exists(path)) std::filesystem::resize_file(path, 0);
  }
  unsynced_.clear();
}

int FaultFs::open(int directory, const char* name, int flags, mode_t mode) {
  if (const int failure = enter(FsCall::open)) return failure;
  const int file = real().open(directory, name, flags, mode);
  const std::lock_guard lock(mutex_);
  if (file >= 0) {
    ++open_;
    written_[file] = path_of(directory, name);
  }
  return file;
}

int FaultFs::close(int file) {
  const int failure = enter(FsCall::close);
  const std::lock_guard lock(mutex_);
  --open_;
  written_.erase(file);
  const int result = real().close(file);
  return failure != 0 ? failure : result;
}

ssize_t FaultFs::read(int file, void* buffer, std::size_t size) {
  if (const int failure = enter(FsCall::read)) return failure;
  return real().read(file, buffer, std::min(size, most_bytes));
}

ssize_t FaultFs::read_at(int file, void* buffer, std::size_t size, std::uint64_t offset) {
  if (const int failure = enter(FsCall::read_at)) return failure;
  return real().read_at(file, buffer, std::min(size, most_bytes), offset);
}

ssize_t FaultFs::write(int file, const void* from, std::size_t size) {
  if (const int failure = enter(FsCall::write)) return failure;
  {
    const std::lock_guard lock(mutex_);
    unsynced_[written_[file]] = true;
  }
  return real().write(file, from, std::min(size, most_bytes));
}

int FaultFs::sync(int file) {
  if (const int failure = enter(FsCall::sync)) return failure;
  {
    const std::lock_guard lock(mutex_);
    unsynced_.erase(written_[file]);
  }
  return skips_sync ? 0 : real().sync(file);
}

int FaultFs::status(int file, struct stat& result) {
  const int failure = enter(FsCall::status);
  return failure != 0 ? failure : real().status(file, result);
}

int FaultFs::read_status(int directory, const char* name, struct stat& result) {
  const int failure = enter(FsCall::read_status);
  return failure != 0 ? failure : real().read_status(directory, name, result);
}

int FaultFs::make_directory(int directory, const char* name, mode_t mode) {
  const int failure = enter(FsCall::make_directory);
  return failure != 0 ? failure : real().make_directory(directory, name, mode);
}

int FaultFs::rename(int directory, const char* from, const char* to) {
  if (const int failure = enter(FsCall::rename)) return failure;
  const int result = real().rename(directory, from, to);
  const std::lock_guard lock(mutex_);
  if (result == 0 && unsynced_.erase(path_of(directory, from)) > 0) {
    unsynced_[path_of(directory, to)] = true;
  }
  return result;
}

int FaultFs::unlink(int directory, const char* name) {
  const int failure = enter(FsCall::unlink);
  return failure != 0 ? failure : real().unlink(directory, name);
}

int FaultFs::touch(int file) {
  const int failure = enter(FsCall::touch);
  return failure != 0 ? failure : real().touch(file);
}

int FaultFs::list(int directory, std::vector<std::string>& names) {
  const int failure = enter(FsCall::list);
  return failure != 0 ? failure : real().list(directory, names);
}

int FaultFs::try_lock(int file, std::uint64_t offset) {
  const int failure = enter(FsCall::try_lock);
  return failure != 0 ? failure : real().try_lock(file, offset);
}

int FaultFs::unlock(int file, std::uint64_t offset) {
  const int failure = enter(FsCall::unlock);
  return failure != 0 ? failure : real().unlock(file, offset);
}

}  // namespace kernwright::test
