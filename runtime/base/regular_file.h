// Files named by a user, read with a limit: a pipe or a device would block the reader for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kernwright {

struct RegularFile {
  std::string bytes;
  std::string reason;         ///< why there are none, "it is a folder, no regular file"; else empty
  bool is_too_large = false;  ///< the reason is the limit
};

/// The bytes of the file where it is a regular one of at most `limit` bytes, also where its name
/// is a link. Opening never waits. Thread-safe.
RegularFile read_regular_file(const std::string& path, std::uint64_t limit);

/// The same of its first bytes, at most `count`, however large it is.
RegularFile read_file_head(const std::string& path, std::size_t count);

}  // namespace kernwright
