// The entries of a cache directory as files: their names, ages, and the removal of the oldest.
#pragma once

#include "base/file_system.h"

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

/// The entries of the directory, in no order; temporary and other files are left out.
std::vector<EntryFile> entry_files(FileSystem& system, int directory);

struct Removal {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
};

/// Removes the entries that were not used for longest until at most `limit` bytes are left.
/// Entries that were replaced since they were listed stay.
Removal remove_oldest(FileSystem& system, int directory, std::uint64_t limit);

}  // namespace kernwright
