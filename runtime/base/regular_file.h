// Files named by a user, read with a limit: a pipe or a device would block the reader for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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

/// Reads the whole numbers, separated by white space, that the file at `path` begins with into
/// `numbers`; its first 256 bytes are looked at. Returns how many were read: fewer than
/// `numbers.size()` where another word comes first, such as the "max" of a control group without a
/// limit, or a number past 64 bits; none where the file cannot be read. Thread-safe.
///
///   std::uint64_t pages[2] = {};
///   if (read_numbers("/proc/self/statm", pages) == 2) use(pages[1]);
std::size_t read_numbers(const std::string& path, std::span<std::uint64_t> numbers);

}  // namespace kernwright
