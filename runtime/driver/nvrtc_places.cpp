// Lists folders and orders what is in them by version.
#include "driver/nvrtc_places.h"

#include "base/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

// NOTE: the bare system call and text, since readdir() with its large buffer and the iterators and
// paths of std::filesystem would take a third of the time in which a process finds its first kernel
// on the disk.

namespace kernwright {
namespace {

constexpr std::string_view kLibrary = "libnvrtc.so";

/// The number at the begin of `text`, which is removed; -1 where there is none.
int take_number(std::string_view& text) {
  int number = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (status != std::errc() || number < 0) return -1;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return number;
}

/// The version after "libnvrtc.so". It orders the files of a folder: none < "13" < "13.5". First is
/// -1 for other names.
std::pair<int, int> parse_version(std::string_view name) {
  if (!name.starts_with(kLibrary)) return {-1, -1};
  name.remove_prefix(kLibrary.size());
  if (name.empty()) return {0, -1};
  if (!name.starts_with('.')) return {-1, -1};
  name.remove_prefix(1);
  const int major = take_number(name);
  if (major < 0 || !name.starts_with('.')) return {major, -1};
  name.remove_prefix(1);
  return {major, take_number(name)};
}

/// Calls visit(name) for what lies in a folder; false when it cannot be read.
template <typename Visit>
bool visit_folder(const std::string& folder, Visit visit) {
  FileSystem& system = FileSystem::real();
  const FileHandle file(system, system.open(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY, 0));
  if (!file) return false;
  alignas(dirent64) std::array<char, 4096> buffer;
  while (true) {
    const long size = ::syscall(SYS_getdents64, file.get(), buffer.data(), buffer.size());
    if (size <= 0) return size == 0;
    for (long at = 0; at < size;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      visit(std::string_view(entry->d_name));
      at += entry->d_reclen;
    }
  }
}

/// An entry of Python's path may be empty: the current folder.
std::string nvidia_below(const std::string& site_packages) {
  return site_packages.empty() ? "nvidia" : site_packages + "/nvidia";
}

}  // namespace

std::vector<std::string> nvrtc_libraries_in(const std::string& folder) {
  std::vector<std::pair<std::pair<int, int>, std::string>> found;
  visit_folder(folder, [&](std::string_view name) {
    const auto version = parse_version(name);
    if (version.first >= 0) found.emplace_back(version, folder + '/' + std::string(name));
  });
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> paths;
  for (auto& [version, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::string cuda12_package_folder(const std::string& site_packages) {
  return nvidia_below(site_packages) + "/cuda_nvrtc/lib";
}

std::vector<std::string> nvrtc_package_folders(const std::string& site_packages) {
  std::vector<std::pair<int, std::string>> bundles;
  const std::string nvidia = nvidia_below(site_packages);
  const bool is_there = visit_folder(nvidia, [&](std::string_view name) {
    if (!name.starts_with("cu")) return;
    std::string folder = nvidia + '/' + std::string(name) + "/lib";
    name.remove_prefix(2);
    const int major = take_number(name);
    if (major >= 0 && name.empty()) bundles.emplace_back(major, std::move(folder));
  });
  if (!is_there) return {};
  std::sort(bundles.rbegin(), bundles.rend());
  std::vector<std::string> folders;
  for (auto& [major, folder] : bundles) folders.push_back(std::move(folder));
  folders.push_back(cuda12_package_folder(site_packages));
  return folders;
}

bool is_regular_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace kernwright
