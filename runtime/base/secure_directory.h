// A directory that nobody else can write to, opened without following a link.
#pragma once

#include "base/file_system.h"

#include <string>

namespace kernwright {

/// The folder of the user's caches: KERNWRIGHT_CACHE_DIR, else $XDG_CACHE_HOME/kernwright, else
/// ~/.cache/kernwright; absolute. Empty when none of these variables names a folder.
std::string default_cache_directory();

/// An open directory that passed the rule of trust: it and each parent made on the way belong to
/// this user or to root, and neither group nor others may write to them. Writers of a cache of code
/// can run code as its user, so a directory that fails is not used at all. Movable.
class SecureDirectory {
 public:
  /// A closed one: it has no reason either.
  SecureDirectory() = default;
  /// Opens `path`, made with mode 0700 where it is missing. Never throws for what it finds.
  static SecureDirectory open(FileSystem& system, const std::string& path);
  /// The same for a direct child of this one.
  SecureDirectory child(const std::string& name) const;
  /// One that was not opened, and why.
  static SecureDirectory closed(std::string path, std::string reason);

  /// A path for readers that open files by paths alone, such as a compiler or the system's loader.
  /// It names this very folder as long as this object lives. If other users can write to a folder
  /// above it, and could put another one in its place, it is the handle's own path in /proc. Empty
  /// without a safe path.
  std::string fixed_path() const;

  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  int get() const noexcept { return handle_.get(); }
  const std::string& path() const noexcept { return path_; }
  /// Why it could not be opened or is not trusted; empty for an open one.
  const std::string& reason() const noexcept { return reason_; }

 private:
  SecureDirectory refuse(std::string reason) &&;
  void enter(int parent, const std::string& name, bool is_last);

  FileSystem* system_ = nullptr;
  FileHandle handle_;
  std::string path_;
  std::string reason_;
};

/// Why a file or directory of that status is not to be trusted; empty when it is.
std::string distrust(const struct stat& status);

}  // namespace kernwright
