// A private folder for what NVRTC writes.
#pragma once

#include "base/secure_directory.h"

#include <string>

namespace kernwright {

/// A new folder of mode 0700 below $TMPDIR or /tmp. The destructor removes it with its contents;
/// without a destructor the exit of the process does. Those that killed processes of this user left
/// behind are removed a day later, when a process makes its first. Not thread-safe.
class ProcessFolder {
 public:
  /// Never throws for a folder that cannot be made: its path is empty then. Where other users could
  /// put a folder of theirs in its place, the path is one by its handle.
  explicit ProcessFolder(const std::string& purpose);
  ~ProcessFolder();
  ProcessFolder(const ProcessFolder&) = delete;
  ProcessFolder& operator=(const ProcessFolder&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// A folder in it, made when missing; empty when it cannot be made.
  std::string subfolder(const std::string& name) const;

 private:
  SecureDirectory opened_;
  std::string name_;  ///< where it was made
  std::string path_;
};

/// Removes the folders in `root` whose process of this user is gone, if nobody touched them for a
/// day (a process of another container may not be seen from here). Links are not followed.
void remove_leftover_folders(const std::string& root);

}  // namespace kernwright
