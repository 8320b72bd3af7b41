// Finds NVRTC and its builtins library, and fills an NvrtcApi from them.
#pragma once

#include "driver/nvrtc_api.h"

#include <string>
#include <vector>

namespace kernwright {

/// One place where NVRTC was looked for.
struct NvrtcCandidate {
  std::string origin;   ///< "KERNWRIGHT_NVRTC", "package", "site-packages", "toolkit" or "system"
  std::string path;     ///< file or folder that was tried
  std::string outcome;  ///< "loaded", "not found", or what was wrong with it
};

/// Places to search, in this order. A plain value, so that a test can search lists of its own.
struct NvrtcSearch {
  std::string override_path;               ///< library or folder; when set, nothing else is tried
  std::string package_directory;           ///< the folder of the kernwright package itself
  std::vector<std::string> site_packages;  ///< folders that hold `nvidia/<package>/lib`
  std::vector<std::string> toolkits;       ///< roots of CUDA toolkits
  bool system_loader = true;               ///< whether to ask the system's loader last

  /// KERNWRIGHT_NVRTC, the folders of set_package_directory() and set_site_packages(), CUDA_PATH,
  /// CUDA_HOME, the environment of conda in CONDA_PREFIX, and /usr/local/cuda.
  static NvrtcSearch from_environment();
};

/// Facts about an NVRTC library, possibly opened by another process. A value.
struct NvrtcFacts {
  int major = 0, minor = 0;
  std::string path;                        ///< file of the library
  std::string builtins_path;               ///< file of its builtins library
  std::string stamp;                       ///< size, inode and time of both files
  std::vector<int> archs;                  ///< compute capabilities it compiles for: 75, 80, ...
  std::vector<NvrtcCandidate> candidates;  ///< every place tried, the one that served last

  std::string version() const;  ///< "13.5"
};

/// An NVRTC library that was opened. It stays open for the life of the process.
struct LoadedNvrtc : NvrtcFacts {
  NvrtcApi api;
};

/// The oldest NVRTC that is accepted: 12.4.
inline constexpr int kOldestNvrtcVersion = 12040;

/// Opens the first whole NVRTC of the search: at least 12.4, with every REQUIRED function and with
/// the builtins library of the same version. Throws NvrtcNotFound with the places tried, their
/// outcome, and the package to install. `candidates`, when given, receives the places also when
/// this throws. Thread-safe.
LoadedNvrtc open_nvrtc(const NvrtcSearch& search,
                       std::vector<NvrtcCandidate>* candidates = nullptr);

/// The stamp that the library's files have now.
std::string make_stamp(const NvrtcFacts& nvrtc);

/// The first library file on the way of open_nvrtc(), found without opening any; empty if only the
/// system's loader may know one.
std::string first_nvrtc_candidate(const NvrtcSearch& search);

/// The NVRTC of this process, opened by the first call that finds one and kept; until then each
/// call searches anew. Throws NvrtcNotFound. Thread-safe.
const LoadedNvrtc& nvrtc();

/// The result of nvrtc(), or null when it has not found one yet. Opens nothing. Thread-safe.
const LoadedNvrtc* nvrtc_if_loaded();

/// The places that the last search of nvrtc() tried; searches when there was none. Never throws
/// NvrtcNotFound.
std::vector<NvrtcCandidate> nvrtc_candidates();

/// The folder of the Python package (it may carry a `lib` folder with NVRTC). Before the first
/// nvrtc(); thread-safe.
void set_package_directory(std::string directory);

/// The folders of sys.path, in its order. Before the first nvrtc(); thread-safe.
void set_site_packages(std::vector<std::string> directories);

}  // namespace kernwright
