// Lists, sorts by last use, removes.
#include "jit/cache/disk_cache_files.h"

#include <algorithm>

#include "jit/cache/checked_file.h"
#include "jit/source/unpacked_headers.h"

namespace kernwright {
namespace {

/// Machines with a shared folder have slightly different clocks.
constexpr std::int64_t kTolerance = 3600;

using Clock = std::chrono::steady_clock;

/// A running compile may still read headers used since then.
constexpr std::int64_t kHeadersIdle = 24 * 3600;
/// Files between two looks at the clock.
constexpr std::size_t kStride = 64;

void sort_oldest_first(std::vector<EntryFile>& files) {
  std::sort(files.begin(), files.end(), [](const EntryFile& a, const EntryFile& b) {
    const auto moment = [](const EntryFile& f) {
      return std::pair(f.last_used, f.last_used == 0 ? 0 : f.status.st_mtim.tv_nsec);
    };
    return moment(a) < moment(b);
  });
}

std::uint64_t total_of(const std::vector<EntryFile>& files) {
  std::uint64_t total = 0;
  for (const EntryFile& file : files) total += file.bytes;
  return total;
}

/// Removes the oldest of `files` until `limit` bytes are left or `end` comes; at least some.
Removal remove_some(FileSystem& system, int directory, std::vector<EntryFile> files,
                    std::uint64_t limit, Clock::time_point end) {
  std::uint64_t total = total_of(files);
  Removal removal;
  if (total <= limit) return removal;
  sort_oldest_first(files);
  for (std::size_t i = 0; i < files.size() && total > limit; ++i) {
    if (i > 0 && i % kStride == 0 && Clock::now() >= end) {
      removal.is_done = false;
      break;
    }
    // Whoever removed or replaced it meanwhile did this sweep's work.
    if (remove_same(system, directory, files[i].name, files[i].status)) {
      ++removal.entries;
      removal.bytes += files[i].bytes;
    }
    total -= files[i].bytes;
  }
  return removal;
}

/// Removes unused headers where room is needed; returns the bytes of the others.
std::uint64_t remove_idle_headers(const SecureDirectory& root, std::uint64_t entries,
                                  std::uint64_t limit) {
  std::vector<UnpackedHeaders> headers = unpacked_headers(root);
  std::uint64_t total = 0;
  for (const UnpackedHeaders& each : headers) total += each.bytes;
  std::sort(headers.begin(), headers.end(),
            [](const auto& a, const auto& b) { return a.last_used < b.last_used; });
  for (const UnpackedHeaders& each : headers) {
    if (entries + total <= limit || each.last_used + kHeadersIdle > ::time(nullptr)) break;
    if (remove_headers(root, each.name)) total -= each.bytes;
  }
  return total;
}

}  // namespace

std::vector<EntryFile> entry_files(FileSystem& system, int directory, Clock::time_point end) {
  std::vector<std::string> names;
  if (system.list(directory, names) < 0) return {};
  const auto now = static_cast<std::int64_t>(::time(nullptr));
  std::vector<EntryFile> files;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string& name = names[i];
    if (i % kStride == 0 && end != kNoHurry && Clock::now() >= end) break;
    if (!name.ends_with(kEntrySuffix)) continue;
    EntryFile file;
    if (system.read_status(directory, name.c_str(), file.status) < 0) continue;
    if (!S_ISREG(file.status.st_mode)) continue;
    file.name = std::move(name);
    file.bytes = static_cast<std::uint64_t>(file.status.st_size);
    file.last_used = file.status.st_mtime > now + kTolerance ? 0 : file.status.st_mtime;
    files.push_back(std::move(file));
  }
  return files;
}

Removal remove_oldest(FileSystem& system, int directory, std::uint64_t limit) {
  return remove_some(system, directory, entry_files(system, directory), limit, kNoHurry);
}

Removal keep_limit(FileSystem& system, const SecureDirectory& root, int directory,
                   std::uint64_t limit, std::chrono::milliseconds budget) {
  const Clock::time_point begin = Clock::now();
  const bool is_bounded = budget != std::chrono::milliseconds::max();
  const auto after = [&](int parts) { return is_bounded ? begin + budget * parts / 2 : kNoHurry; };
  std::vector<EntryFile> files = entry_files(system, directory, after(1));
  const bool saw_all = Clock::now() < after(1);
  const std::uint64_t entries = total_of(files);
  const std::uint64_t headers = remove_idle_headers(root, entries, limit);
  const std::uint64_t room = std::max(limit - std::min(headers, limit), limit / 2);
  if (entries <= room) return {0, 0, saw_all};
  // If not all were seen, the oldest of the seen ones go.
  Removal removal = remove_some(system, directory, std::move(files), room / 10 * 9, after(2));
  removal.is_done = removal.is_done && saw_all;
  return removal;
}

}  // namespace kernwright
