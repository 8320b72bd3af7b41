// A private folder for NVRTC's files.
#pragma once

#include "base/secure_directory.h"

#include <string>

namespace kernwright {

/// A new folder of mode 0700 below $TMPDIR or /tmp. The destructor or the exit of the process
/// removes it with its contents. Killed processes leave their folders behind; a process that makes
/// its first folder removes leftovers of this user after a day. Not thread-safe.
class ProcessFolder {
 public:
  /// Never throws if the folder cannot be made: its path is then empty. If other users could
  /// replace the folder, the path goes through its handle.
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

/// Removes folders in `root` from ended processes of this user, if they were unchanged for a day (a
/// process of another container may not be visible here). Links are not followed.
void remove_leftover_folders(const std::string& root);

}  // namespace kernwright
