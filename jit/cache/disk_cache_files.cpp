// Lists, sorts by last use, removes.
#include "jit/cache/disk_cache_files.h"

#include <algorithm>

#include "jit/cache/checked_file.h"

namespace kernwright {
namespace {

/// Clocks of machines that share a folder differ a little.
constexpr std::int64_t kTolerance = 3600;

}  // namespace

std::vector<EntryFile> entry_files(FileSystem& system, int directory) {
  std::vector<std::string> names;
  if (system.list(directory, names) < 0) return {};
  const auto now = static_cast<std::int64_t>(::time(nullptr));
  std::vector<EntryFile> files;
  for (std::string& name : names) {
    if (!name.ends_with(kEntrySuffix)) continue;
    EntryFile file;
    if (system.status_of(directory, name.c_str(), file.status) < 0) continue;
    if (!S_ISREG(file.status.st_mode)) continue;
    file.name = std::move(name);
    file.bytes = static_cast<std::uint64_t>(file.status.st_size);
    file.last_used = file.status.st_mtime > now + kTolerance ? 0 : file.status.st_mtime;
    files.push_back(std::move(file));
  }
  return files;
}

Removal remove_oldest(FileSystem& system, int directory, std::uint64_t limit) {
  std::vector<EntryFile> files = entry_files(system, directory);
  std::uint64_t total = 0;
  for (const EntryFile& file : files) total += file.bytes;
  Removal removal;
  if (total <= limit) return removal;
  std::sort(files.begin(), files.end(), [](const EntryFile& a, const EntryFile& b) {
    const auto moment = [](const EntryFile& f) {
      return std::pair(f.last_used, f.last_used == 0 ? 0 : f.status.st_mtim.tv_nsec);
    };
    return moment(a) < moment(b);
  });
  for (const EntryFile& file : files) {
    if (total <= limit) break;
    // Whoever removed or replaced it meanwhile did this sweep's work.
    if (remove_same(system, directory, file.name, file.status)) {
      ++removal.entries;
      removal.bytes += file.bytes;
    }
    total -= file.bytes;
  }
  return removal;
}

}  // namespace kernwright
