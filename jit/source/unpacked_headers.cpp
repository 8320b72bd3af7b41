// Unpacks NVRTC's headers beside their final place, lists them, and moves them there at once.
#include "jit/source/unpacked_headers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <optional>

#include "base/format.h"
#include "base/hash.h"
#include "base/whole_file.h"

namespace kernwright {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnfinished = ".new-";  ///< behind the name: a folder being unpacked
constexpr const char* kList = ".kernwright-files";
constexpr std::int64_t kUseResolution = 3600;  ///< seconds
constexpr std::int64_t kUnfinishedAge = 3600;  ///< seconds

/// A line of the list, of a file or a folder: size, time of the last change in nanoseconds, hash,
/// path in the folder.
struct ListedFile {
  std::uint64_t bytes = 0;
  std::int64_t changed = 0;
  std::string hash;
  std::string path;

  bool is_folder() const { return path.ends_with('/'); }
};

std::string by_handle(const SecureDirectory& folder) {
  return format("/proc/self/fd/{}", folder.get());
}

std::int64_t changed_at(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// The list's line for a file, or for a folder (its path ends with a '/'). Nothing if unreadable.
std::optional<std::string> list_line(const std::string& root, const std::string& path) {
  struct stat status {};
  if (::lstat((root + "/" + path).c_str(), &status) != 0) return std::nullopt;
  if (S_ISDIR(status.st_mode)) {
    return format("0 {} {} {}/\n", changed_at(status), Hash128().to_hex(), path);
  }
  if (!S_ISREG(status.st_mode)) return std::string();
  const auto text = read_whole_file(root + "/" + path);
  if (!text) return std::nullopt;
  return format("{} {} {} {}\n", text->size(), changed_at(status), hash_text(*text).to_hex(), path);
}

/// Written in one piece at the end: a folder with an empty list was not unpacked wholly.
bool make_list(const std::string& folder) {
  const std::string path = folder + "/" + kList;
  // The list's file comes first: it changes the time of its folder, and the list records this time.
  if (!write_whole_file(path, "")) return false;
  const auto own = list_line(folder, ".");
  if (!own) return false;
  std::string list = *own;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path() == path) continue;
    const auto line = list_line(folder, at->path().string().substr(folder.size() + 1));
    if (!line) return false;
    list += *line;
  }
  return !error && write_whole_file(path, list);
}

std::optional<std::vector<ListedFile>> read_list(const std::string& folder) {
  const auto text = read_whole_file(folder + "/" + kList);
  if (!text || text->empty()) return std::nullopt;
  std::vector<ListedFile> files;
  const char* at = text->data();
  const char* const end = at + text->size();
  while (at < end) {
    ListedFile file;
    const auto size = std::from_chars(at, end, file.bytes);
    if (size.ec != std::errc() || size.ptr == end) return std::nullopt;
    const auto changed = std::from_chars(size.ptr + 1, end, file.changed);
    const std::string_view rest(changed.ptr, static_cast<std::size_t>(end - changed.ptr));
    const auto line_end = rest.find('\n');
    constexpr std::size_t kHash = 32;
    if (changed.ec != std::errc() || line_end == std::string_view::npos || line_end < kHash + 3) {
      return std::nullopt;
    }
    file.hash = rest.substr(1, kHash);
    file.path = rest.substr(kHash + 2, line_end - kHash - 2);
    at = rest.data() + line_end + 1;
    files.push_back(std::move(file));
  }
  return files;
}

/// The difference between the file and the list, by its status alone; empty if there is none.
std::string difference(const std::string& folder, const ListedFile& file) {
  struct stat status {};
  if (::lstat((folder + "/" + file.path).c_str(), &status) != 0) return "it is missing";
  if (file.is_folder()) return S_ISDIR(status.st_mode) ? "" : "it is no folder";
  if (!S_ISREG(status.st_mode)) return "it is no regular file";
  if (static_cast<std::uint64_t>(status.st_size) != file.bytes) {
    return format("it has {} bytes instead of {}", status.st_size, file.bytes);
  }
  return changed_at(status) == file.changed ? "" : "it was written again";
}

bool is_whole(const std::string& folder) {
  const auto files = read_list(folder);
  return files && std::all_of(files->begin(), files->end(), [&](const ListedFile& file) {
           return difference(folder, file).empty();
         });
}

/// Whether no file was added or removed, by the folders alone: a tenth of all entries.
bool has_same_folders(const std::string& folder) {
  const auto files = read_list(folder);
  return files && std::all_of(files->begin(), files->end(), [&](const ListedFile& file) {
           struct stat status {};
           return !file.is_folder() || (::lstat((folder + "/" + file.path).c_str(), &status) == 0 &&
                                        changed_at(status) == file.changed);
         });
}

std::uint64_t bytes_of(const std::string& folder) {
  std::uint64_t bytes = 0;
  if (const auto files = read_list(folder)) {
    for (const ListedFile& file : *files) bytes += file.bytes;
    return bytes;
  }
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    struct stat status {};
    const bool is_file = ::lstat(at->path().c_str(), &status) == 0 && S_ISREG(status.st_mode);
    if (is_file) bytes += static_cast<std::uint64_t>(status.st_size);
  }
  return bytes;
}

/// Keeps the time of last use: the time of the list.
void note_use(const std::string& folder) {
  const std::string list = folder + "/" + kList;
  struct stat status {};
  if (::stat(list.c_str(), &status) != 0) return;
  if (status.st_mtime + kUseResolution < std::time(nullptr)) {
    ::utimensat(AT_FDCWD, list.c_str(), nullptr, 0);
  }
}

void remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
}

/// Moves the folder `from` to `to`. The old folder is at `from` afterwards, or gone.
bool put_in_place(int root, const std::string& from, const std::string& to) {
#ifdef RENAME_EXCHANGE
  if (::renameat2(root, from.c_str(), root, to.c_str(), RENAME_EXCHANGE) == 0) return true;
#endif
  if (::renameat(root, from.c_str(), root, to.c_str()) == 0) return true;
  // No file system for an exchange: for a moment there is none.
  const std::string aside = from + "-old";
  if (::renameat(root, to.c_str(), root, aside.c_str()) != 0) return false;
  const bool is_done = ::renameat(root, from.c_str(), root, to.c_str()) == 0;
  remove_tree(format("/proc/self/fd/{}/{}", root, aside));
  return is_done;
}

SecureDirectory refused(const SecureDirectory& root, const std::string& name,
                        const std::string& why) {
  return SecureDirectory::closed(root.path() + "/" + name, why);
}

}  // namespace

SecureDirectory unpack_headers(const LoadedNvrtc& nvrtc, const SecureDirectory& root) {
  const std::string name = std::string(kUnpackedStem) + nvrtc.version();
  SecureDirectory present = root.child(name);
  if (!present) return present;
  if (is_whole(by_handle(present))) {
    note_use(by_handle(present));
    return present;
  }
  const auto moment = std::chrono::steady_clock::now().time_since_epoch().count();
  const std::string fresh_name = format("{}{}{}-{:x}", name, kUnfinished, ::getpid(), moment);
  const std::string fresh_path = by_handle(root) + "/" + fresh_name;
  {
    const SecureDirectory fresh = root.child(fresh_name);
    if (!fresh) return refused(root, name, fresh.reason());
    const char* log = nullptr;
    const nvrtcResult installed = nvrtc.api.nvrtcInstallBundledHeaders(
        by_handle(fresh).c_str(), kInstallHeadersSkipIfExists, &log);
    if (installed != NVRTC_SUCCESS || !make_list(by_handle(fresh))) {
      remove_tree(fresh_path);
      return refused(root, name,
                     format("NVRTC {} could not unpack them there: {} {}", nvrtc.version(),
                            nvrtc.api.nvrtcGetErrorString(installed), log == nullptr ? "" : log));
    }
  }
  // Another process may have done the same meanwhile: then one of both is thrown away.
  const bool is_done = put_in_place(root.get(), fresh_name, name);
  remove_tree(fresh_path);
  present = root.child(name);
  if (present && !is_done && !is_whole(by_handle(present))) {
    return refused(root, name, "the unpacked headers could not be put in place");
  }
  return present;
}

bool are_in_place(const SecureDirectory& headers) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(headers.get(), &opened) == 0 && ::stat(headers.path().c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev &&
         has_same_folders(by_handle(headers));
}

std::vector<UnpackedHeaders> unpacked_headers(const SecureDirectory& root) {
  std::vector<UnpackedHeaders> result;
  if (!root) return result;
  std::error_code error;
  for (fs::directory_iterator at(by_handle(root), error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code none;
    if (!name.starts_with(kUnpackedStem) || !fs::is_directory(at->symlink_status(none))) continue;
    UnpackedHeaders found;
    found.name = name;
    struct stat status {};
    const bool has_list = ::lstat((at->path() / kList).c_str(), &status) == 0;
    if (has_list || ::lstat(at->path().c_str(), &status) == 0) found.last_used = status.st_mtime;
    // Other processes must not touch a folder being unpacked, unless its process was killed.
    const bool is_unfinished = name.find(kUnfinished) != std::string::npos;
    if (is_unfinished && found.last_used + kUnfinishedAge > std::time(nullptr)) continue;
    found.bytes = bytes_of(at->path().string());
    result.push_back(std::move(found));
  }
  return result;
}

std::vector<DamagedHeader> damaged_headers(const SecureDirectory& root, const std::string& name) {
  const std::string folder = by_handle(root) + "/" + name;
  const auto files = read_list(folder);
  if (!files) return {{name, "the list of its files is missing or damaged"}};
  std::vector<DamagedHeader> result;
  for (const ListedFile& file : *files) {
    std::string reason = difference(folder, file);
    if (reason.empty()) {
      const auto text = file.is_folder() ? std::nullopt : read_whole_file(folder + "/" + file.path);
      if (!file.is_folder() && (!text || hash_text(*text).to_hex() != file.hash))
        reason = "its contents have changed";
    }
    if (!reason.empty()) result.push_back({name + "/" + file.path, std::move(reason)});
  }
  return result;
}

bool remove_headers(const SecureDirectory& root, const std::string& name) {
  const std::string folder = by_handle(root) + "/" + name;
  std::error_code error;
  // First of all the list: nobody takes the rest for whole.
  fs::remove(folder + "/" + kList, error);
  fs::remove_all(folder, error);
  return !error;
}

}  // namespace kernwright
