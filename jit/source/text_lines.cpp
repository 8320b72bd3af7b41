// Searches the bytes of a file.
#include "jit/source/text_lines.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "base/whole_file.h"

namespace kernwright {
namespace {

struct WholeFile {
  std::string path;
  struct stat status {};
  std::string bytes;
};

using Shared = std::shared_ptr<const WholeFile>;

struct LastFile {
  std::mutex mutex;
  Shared file;
};

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

/// Null where it cannot be read.
Shared whole_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
  static auto& last = *new LastFile;  // kept to the end of the process on purpose
  {
    const std::lock_guard lock(last.mutex);
    const Shared& known = last.file;
    if (known && known->path == path && is_same(known->status, status)) return known;
  }
  auto bytes = read_whole_file(path);
  if (!bytes) return nullptr;
  auto made = std::make_shared<const WholeFile>(WholeFile{path, status, std::move(*bytes)});
  const std::lock_guard lock(last.mutex);
  last.file = made;
  return made;
}

}  // namespace

std::vector<int> lines_of_text(const std::string& path, std::string_view text) {
  std::vector<int> lines;
  const Shared file = text.empty() ? nullptr : whole_file(path);
  if (!file) return lines;
  const std::string_view whole = file->bytes;
  if (whole.find('\r') != std::string_view::npos) return lines;
  int line = 1;
  std::size_t counted = 0;
  for (auto at = whole.find(text); at != std::string_view::npos; at = whole.find(text, at + 1)) {
    const std::string_view between = whole.substr(counted, at - counted);
    line += static_cast<int>(std::count(between.begin(), between.end(), '\n'));
    counted = at;
    lines.push_back(line);
  }
  return lines;
}

}  // namespace kernwright
