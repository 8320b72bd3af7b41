// The entries of a cache directory as files: their names, ages, and the removal of the oldest.
#pragma once

#include "base/file_system.h"
#include "base/secure_directory.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace kernwright {

inline constexpr std::string_view kEntrySuffix = ".kwc";

/// An entry's file.
struct EntryFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t last_used = 0;  ///< seconds since 1970; a time in the future counts as never
  struct stat status {};
};

/// No limit of time.
inline constexpr auto kNoHurry = std::chrono::steady_clock::time_point::max();

/// The entries of the directory, in no order, without temporary and other files. After `end`: those
/// found so far.
std::vector<EntryFile> entry_files(FileSystem& system, int directory,
                                   std::chrono::steady_clock::time_point end = kNoHurry);

struct Removal {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  bool is_done = true;  ///< false where the time was up before the limit was kept
};

/// Removes the least recently used entries until at most `limit` bytes are left. Entries replaced
/// since they were listed stay.
Removal remove_oldest(FileSystem& system, int directory, std::uint64_t limit);

/// Acts where entries and unpacked headers together have more than `limit` bytes. Removes headers
/// unused for a day, then the oldest entries, some more than needed: not every later store begins
/// anew. Headers in use leave at least half of the limit to entries. Stops after about `budget`,
/// and always comes some entries closer to the limit.
Removal keep_limit(FileSystem& system, const SecureDirectory& root, int directory,
                   std::uint64_t limit, std::chrono::milliseconds budget);

}  // namespace kernwright
