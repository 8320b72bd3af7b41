// Walks down to the directory from descriptor to descriptor, and checks what it meets.
#include "base/secure_directory.h"

#include "base/env.h"
#include "base/format.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace kernwright {
namespace {

namespace fs = std::filesystem;

constexpr int kDirectory = O_RDONLY | O_DIRECTORY;

/// Whether lexically_normal() would leave the path as it is, found without std::filesystem: most
/// paths are so, and the first kernel of a process waits for this.
bool is_normal_absolute(std::string_view path) {
  if (!path.starts_with('/')) return false;
  for (std::size_t begin = 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

std::string folder_below(const char* variable, const char* below) {
  const char* const root = std::getenv(variable);
  return root != nullptr && root[0] == '/' ? std::string(root) + below : std::string();
}

/// Whether nobody but this user and root can rename or replace a folder of the absolute path.
bool is_fixed(const fs::path& path) {
  for (fs::path folder = path; !folder.empty(); folder = folder.parent_path()) {
    struct stat status {};
    if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
    const bool is_sticky = (status.st_mode & S_ISVTX) != 0;
    if (status.st_uid != ::geteuid() && status.st_uid != 0) return false;
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !is_sticky) return false;
    if (folder == folder.root_path()) return true;
  }
  return false;
}

bool is_same_folder(const std::string& path, const struct stat& wanted) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && status.st_dev == wanted.st_dev &&
         status.st_ino == wanted.st_ino;
}

}  // namespace

std::string default_cache_directory() {
  if (env_is_set(Env::cache_dir)) {
    std::string text = env_text(Env::cache_dir);
    if (is_normal_absolute(text)) return text;
    std::error_code error;
    const fs::path absolute = fs::absolute(text, error);
    return error ? std::string() : absolute.lexically_normal().string();
  }
  const std::string cache = folder_below("XDG_CACHE_HOME", "/kernwright");
  return cache.empty() ? folder_below("HOME", "/.cache/kernwright") : cache;
}

std::string distrust(const struct stat& status) {
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return format("it belongs to another user (uid {})", status.st_uid);
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return format("other users can write to it (mode {:04o})", status.st_mode & 07777);
  }
  return {};
}

SecureDirectory SecureDirectory::open(FileSystem& system, const std::string& path) {
  SecureDirectory result;
  result.system_ = &system;
  result.path_ = is_normal_absolute(path) ? path : fs::path(path).lexically_normal().string();
  while (result.path_.size() > 1 && result.path_.back() == '/') result.path_.pop_back();
  const std::string& whole = result.path_;
  if (!is_normal_absolute(whole)) {
    return std::move(result).refuse("its path is not that of a folder below the root");
  }
  // The deepest existing folder; its owner decides on write access.
  std::size_t begin = whole.rfind('/') + 1;  // of what lies below it
  const auto present = [&] { return whole.substr(0, std::max<std::size_t>(begin - 1, 1)); };
  int opened = system.open(AT_FDCWD, present().c_str(), kDirectory, 0);
  while (opened == -ENOENT && begin > 1) {
    begin = whole.rfind('/', begin - 2) + 1;
    opened = system.open(AT_FDCWD, present().c_str(), kDirectory, 0);
  }
  if (opened < 0) {
    return std::move(result).refuse(
        format("{} cannot be opened: {}", present(), describe_failure(opened)));
  }
  result.handle_ = FileHandle(system, opened);
  while (result && begin < whole.size()) {
    const std::size_t end = std::min(whole.find('/', begin), whole.size());
    const FileHandle parent = std::move(result.handle_);
    result.enter(parent.get(), whole.substr(begin, end - begin), end == whole.size());
    begin = end + 1;
  }
  return result;
}

SecureDirectory SecureDirectory::child(const std::string& name) const {
  SecureDirectory result;
  result.system_ = system_;
  result.path_ = path_ + "/" + name;
  if (handle_) {
    result.enter(handle_.get(), name, true);
  } else {
    result.reason_ = reason_;
  }
  return result;
}

SecureDirectory SecureDirectory::closed(std::string path, std::string reason) {
  SecureDirectory result;
  result.path_ = std::move(path);
  result.reason_ = std::move(reason);
  return result;
}

std::string SecureDirectory::fixed_path() const {
  struct stat handle_status {};
  if (!handle_ || ::fstat(handle_.get(), &handle_status) != 0) return {};
  std::error_code error;
  const fs::path real = fs::canonical(path_, error);
  if (!error && is_fixed(real) && is_same_folder(real.string(), handle_status))
    return real.string();
  const std::string by_handle = format("/proc/self/fd/{}", handle_.get());
  return is_same_folder(by_handle, handle_status) ? by_handle : std::string();
}

void SecureDirectory::enter(int parent, const std::string& name, bool is_last) {
  constexpr int kFlags = kDirectory | O_NOFOLLOW;
  int opened = system_->open(parent, name.c_str(), kFlags, 0);
  bool is_new = false;
  if (opened == -ENOENT) {
    const int made = system_->make_directory(parent, name.c_str(), 0700);
    if (made < 0 && made != -EEXIST) {
      reason_ = format("it cannot be made: {}", describe_failure(made));
      return;
    }
    is_new = made == 0;
    opened = system_->open(parent, name.c_str(), kFlags, 0);
  }
  if (opened < 0) {
    reason_ = opened == -ELOOP || opened == -ENOTDIR
                  ? std::string("it is not a folder, or it is a link")
                  : format("it cannot be opened: {}", describe_failure(opened));
    return;
  }
  FileHandle handle(*system_, opened);
  struct stat status {};
  if (const int result = system_->status(opened, status); result < 0) {
    reason_ = format("it cannot be examined: {}", describe_failure(result));
    return;
  }
  // A parent counts when it was made here; others may have theirs as they like.
  if (is_last || is_new) reason_ = distrust(status);
  if (reason_.empty()) handle_ = std::move(handle);
}

SecureDirectory SecureDirectory::refuse(std::string reason) && {
  reason_ = std::move(reason);
  return std::move(*this);
}

}  // namespace kernwright
