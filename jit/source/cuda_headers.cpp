// Finds or unpacks CUDA's headers.
#include "jit/source/cuda_headers.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>

#include "base/format.h"
#include "base/whole_file.h"
#include "jit/source/unpacked_headers.h"

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

/// Finds or unpacks NVRTC's bundle. Null where there is none, with the reason in `note`.
std::shared_ptr<const SecureDirectory> find_bundle(const LoadedNvrtc& nvrtc,
                                                   const std::string& cache_folder,
                                                   std::string& note) {
  nvrtcBundledHeadersInfo info{};
  const char* log = nullptr;
  const nvrtcResult asked = nvrtc.api.nvrtcGetBundledHeadersInfo(&info, &log);
  if (asked == kNvrtcNotSupported || (asked == NVRTC_SUCCESS && info.available == 0)) return {};
  if (cache_folder.empty()) {
    note = "there is no cache folder to unpack NVRTC's headers into (set XDG_CACHE_HOME or HOME)";
    return {};
  }
  // A user with write access here can change the results of kernels.
  const SecureDirectory parent = SecureDirectory::open(FileSystem::real(), cache_folder);
  auto opened = std::make_shared<const SecureDirectory>(parent ? unpack_headers(nvrtc, parent)
                                                               : SecureDirectory());
  if (*opened && !opened->fixed_path().empty()) return opened;
  const std::string& folder = parent && !opened->path().empty() ? opened->path() : cache_folder;
  note = format("NVRTC's headers are not unpacked into {}: {}", folder,
                !parent   ? parent.reason()
                : *opened ? "other users can put another folder in its place"
                          : opened->reason());
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

/// Include folders of the pip packages of NVRTC's own CUDA release, wherever NVRTC itself lies.
std::vector<std::string> in_packages(const LoadedNvrtc& nvrtc,
                                     const std::vector<std::string>& site_packages) {
  for (const std::string& site : site_packages) {
    const fs::path packages = fs::path(site) / "nvidia";
    const fs::path joint = packages / ("cu" + std::to_string(nvrtc.major)) / "include";
    if (is_file(joint / kMarker)) return with_library(joint);
    const fs::path runtime = packages / "cuda_runtime/include";
    if (nvrtc.major != 12 || !is_file(runtime / kMarker)) continue;
    std::vector<std::string> folders = with_library(runtime);
    const fs::path library = packages / "cuda_cccl/include";
    if (is_folder(library)) folders.push_back(library.string());
    return folders;
  }
  return {};
}

void add_compiler_headers(CudaHeaders& headers, const std::vector<std::string>& toolkits) {
  const auto has_them = [](const fs::path& folder) { return is_file(folder / "crt/mma.h"); };
  if (std::any_of(headers.folders.begin(), headers.folders.end(), has_them)) return;
  for (const std::string& root : toolkits) {
    const fs::path folder = fs::path(root) / "include";
    if (!has_them(folder)) continue;
    headers.folders.push_back(folder.string());
    headers.origin += ", crt of a toolkit";
    return;
  }
}

void add_library(CudaHeaders& headers, const std::vector<std::string>& toolkits) {
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

/// The roots with headers of NVRTC's own CUDA release: others do not fit together. A root without a
/// known release counts as fitting.
std::vector<std::string> fitting(const std::vector<std::string>& toolkits, int major) {
  const auto is_other = [major](const std::string& root) {
    const std::string path = fs::path(root) / "include/cuda.h";
    const std::string header = "\n" + read_whole_file(path).value_or(std::string());
    constexpr std::string_view kDefine = "\n#define CUDA_VERSION ";
    const auto at = header.find(kDefine);
    if (at == std::string::npos) return false;
    return std::atoi(header.c_str() + at + kDefine.size()) / 1000 != major;
  };
  std::vector<std::string> result;
  std::remove_copy_if(toolkits.begin(), toolkits.end(), std::back_inserter(result), is_other);
  return result;
}

/// The pip package of the headers lacks the C++ library and the includes of mma.h; a toolkit's
/// serve in their place, after the package's own folders.
void add_from_toolkit(CudaHeaders& headers, const std::vector<std::string>& toolkits) {
  add_library(headers, toolkits);
  add_compiler_headers(headers, toolkits);
}

}  // namespace

HeaderPlaces HeaderPlaces::of_process() {
  NvrtcSearch search = NvrtcSearch::from_environment();
  return {default_cache_directory(), std::move(search.toolkits), std::move(search.site_packages)};
}

CudaHeaders find_cuda_headers(const LoadedNvrtc& nvrtc, const HeaderPlaces& places) {
  const std::vector<std::string> toolkits = fitting(places.toolkits, nvrtc.major);
  CudaHeaders result;
  result.held = find_bundle(nvrtc, places.cache_folder, result.note);
  if (result.held) {
    result.folders = with_library(result.held->fixed_path());
    result.origin = "NVRTC's bundle";
    result.is_bundle = true;
    return result;
  }
  result.folders = beside(nvrtc);
  if (!result.folders.empty()) {
    result.origin = "beside NVRTC";
  } else {
    result.folders = in_packages(nvrtc, places.site_packages);
    if (!result.folders.empty()) result.origin = "packages";
  }
  if (!result.folders.empty()) {
    add_from_toolkit(result, toolkits);
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

namespace {

bool is_current(const CudaHeaders& headers) {
  if (headers.is_bundle) return are_in_place(*headers.held);
  return is_folder(headers.folders.front());
}

}  // namespace

CudaHeaders cuda_headers(const LoadedNvrtc& nvrtc, const HeaderPlaces& places) {
  struct Known {
    std::mutex mutex;
    std::map<std::string, CudaHeaders> by_library;
  };
  static Known& known = *new Known;  // kept to the end of the process on purpose
  const std::string key = nvrtc.path + '\n' + nvrtc.version() + '\n' + places.cache_folder;
  const std::lock_guard lock(known.mutex);
  const auto found = known.by_library.find(key);
  if (found != known.by_library.end() && is_current(found->second)) return found->second;
  CudaHeaders headers = find_cuda_headers(nvrtc, places);
  if (!headers.folders.empty()) known.by_library[key] = headers;
  return headers;
}

bool is_cuda_header(const std::string& path, const HeaderPlaces& places) {
  const auto lies_below = [&](const fs::path& folder, std::string_view stem) {
    std::error_code error;
    const std::string real = fs::canonical(folder, error).string() + "/";
    return !error && real.size() > 1 && path.starts_with(real) &&
           std::string_view(path).substr(real.size()).starts_with(stem);
  };
  const auto any = [&](const std::vector<std::string>& roots, const char* folder) {
    return std::any_of(roots.begin(), roots.end(), [&](const std::string& root) {
      return lies_below(fs::path(root) / folder, {});
    });
  };
  return (!places.cache_folder.empty() && lies_below(places.cache_folder, kUnpackedStem)) ||
         any(places.toolkits, "include") || any(places.site_packages, "nvidia");
}

}  // namespace kernwright
