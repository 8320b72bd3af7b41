// Finds or unpacks CUDA's headers.
#include "jit/cuda_headers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/format.h"

namespace kernwright {
namespace {

namespace fs = std::filesystem;

/// A folder with this file holds CUDA's device headers.
constexpr const char* kMarker = "cuda_fp16.h";

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

/// Makes `path` with mode 0700 where it is missing. Says what is wrong with it, or nothing: whoever
/// can write here can change what kernels do, so it must be ours alone.
std::string make_private_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return format("{} cannot be made: {}", path.string(), std::strerror(errno));
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    return format("{} cannot be read: {}", path.string(), std::strerror(errno));
  }
  if (!S_ISDIR(status.st_mode)) return format("{} is not a folder", path.string());
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return format("{} belongs to another user", path.string());
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return format("{} can be written by other users", path.string());
  }
  return {};
}

/// Unpacks NVRTC's bundle. The folder, or an empty path with the reason in `note`.
fs::path install_bundle(const LoadedNvrtc& nvrtc, const std::string& cache_folder,
                        std::string& note) {
  nvrtcBundledHeadersInfo info{};
  const char* log = nullptr;
  const nvrtcResult asked = nvrtc.api.nvrtcGetBundledHeadersInfo(&info, &log);
  if (asked == kNvrtcNotSupported || (asked == NVRTC_SUCCESS && info.available == 0)) return {};
  if (cache_folder.empty()) {
    note = "there is no cache folder to unpack NVRTC's headers into (set XDG_CACHE_HOME or HOME)";
    return {};
  }
  const fs::path parent = cache_folder;
  const fs::path folder = parent / ("nvrtc-headers-" + nvrtc.version());
  note = make_private_folder(parent);
  if (note.empty()) note = make_private_folder(folder);
  if (!note.empty()) return {};
  // NVRTC locks the folder itself and returns at once when this version is there already.
  log = nullptr;
  const nvrtcResult installed =
      nvrtc.api.nvrtcInstallBundledHeaders(folder.c_str(), kInstallHeadersSkipIfExists, &log);
  if (installed == NVRTC_SUCCESS && is_file(folder / kMarker)) return folder;
  note =
      format("NVRTC {} could not unpack its headers into {}: {} {}", nvrtc.version(),
             folder.string(), nvrtc.api.nvrtcGetErrorString(installed), log == nullptr ? "" : log);
  return {};
}

/// An include folder and the folder of the C++ library in or beside it.
std::vector<std::string> with_library(const fs::path& include) {
  std::vector<std::string> result{include.string()};
  if (is_folder(include / "cccl")) result.push_back((include / "cccl").string());
  return result;
}

/// Include folders of the pip packages and of a toolkit, seen from the library's own folder.
std::vector<std::string> beside(const LoadedNvrtc& nvrtc) {
  const fs::path library = fs::path(nvrtc.path).parent_path();
  if (library.empty()) return {};
  std::error_code error;
  fs::path real = fs::canonical(nvrtc.path, error).parent_path();
  if (error) real = library;
  for (const fs::path& root : {library.parent_path(), real.parent_path()}) {
    for (const fs::path& include :
         {root / "include", root.parent_path() / "cuda_runtime/include"}) {
      if (!is_file(include / kMarker)) continue;
      std::vector<std::string> folders = with_library(include);
      const fs::path library_package = root.parent_path() / "cuda_cccl/include";
      if (is_folder(library_package)) folders.push_back(library_package.string());
      return folders;
    }
  }
  return {};
}

/// The pip package of the headers does not bring the C++ library; a toolkit's serves in its place.
void add_library_of_toolkit(CudaHeaders& headers, const std::vector<std::string>& toolkits) {
  const auto has_library = [](const fs::path& folder) { return is_folder(folder / "cuda/std"); };
  if (std::any_of(headers.folders.begin(), headers.folders.end(), has_library)) return;
  for (const std::string& root : toolkits) {
    const fs::path include = fs::path(root) / "include";
    for (const fs::path& folder : {include / "cccl", include}) {
      if (!has_library(folder)) continue;
      headers.folders.push_back(folder.string());
      headers.origin += ", C++ library of a toolkit";
      return;
    }
  }
}

}  // namespace

std::string user_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/kernwright";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/kernwright";
  return {};
}

CudaHeaders find_cuda_headers(const LoadedNvrtc& nvrtc, const std::string& cache_folder,
                              const std::vector<std::string>& toolkits) {
  CudaHeaders result;
  const fs::path bundle = install_bundle(nvrtc, cache_folder, result.note);
  if (!bundle.empty()) {
    result.folders = with_library(bundle);
    result.origin = "NVRTC's bundle";
    return result;
  }
  result.folders = beside(nvrtc);
  if (!result.folders.empty()) {
    result.origin = "beside NVRTC";
    add_library_of_toolkit(result, toolkits);
    return result;
  }
  for (const std::string& root : toolkits) {
    if (!is_file(fs::path(root) / "include" / kMarker)) continue;
    result.folders = with_library(fs::path(root) / "include");
    result.origin = "toolkit";
    return result;
  }
  result.origin = "none";
  return result;
}

CudaHeaders cuda_headers(const LoadedNvrtc& nvrtc) {
  struct Known {
    std::mutex mutex;
    std::map<std::string, CudaHeaders> by_library;
  };
  static Known& known = *new Known;  // kept to the end of the process on purpose
  const std::string cache_folder = user_cache_folder();
  const std::string key = nvrtc.path + '\n' + nvrtc.version() + '\n' + cache_folder;
  const std::lock_guard lock(known.mutex);
  const auto found = known.by_library.find(key);
  if (found != known.by_library.end() && is_folder(found->second.folders.front())) {
    return found->second;
  }
  CudaHeaders headers =
      find_cuda_headers(nvrtc, cache_folder, NvrtcSearch::from_environment().toolkits);
  if (!headers.folders.empty()) known.by_library[key] = headers;
  return headers;
}

}  // namespace kernwright
