// Reading of the cache's own files: bounded, owner checked, no link followed.
#pragma once

#include "base/file_system.h"

#include <cstddef>
#include <string>
#include <vector>

namespace kernwright {

enum class ReadOutcome {
  read,       ///< all bytes are there
  absent,     ///< no such file
  untrusted,  ///< a link, no regular file, another owner, writable by others, too large
  failed,     ///< the system could not read it; nothing is known about its contents
};

struct CheckedFile {
  ReadOutcome outcome = ReadOutcome::absent;
  std::vector<std::byte> bytes;
  struct stat status {};
  std::string reason;  ///< why it was not read
};

/// Reads a file of at most `limit` bytes. With `refresh_after` > 0, sets its time of last use to
/// now if the two differ by more seconds.
CheckedFile read_checked(FileSystem& system, int directory, const std::string& name,
                         std::uint64_t limit, std::int64_t refresh_after = 0);

/// Removes `name` if its status is still the given one.
bool remove_same(FileSystem& system, int directory, const std::string& name,
                 const struct stat& status);

}  // namespace kernwright
