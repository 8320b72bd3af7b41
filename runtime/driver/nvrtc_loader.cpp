// The search for NVRTC: candidates in order, each opened, checked and recorded.
#include "driver/nvrtc_loader.h"

#include "base/env.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "driver/nvrtc_places.h"
#include "driver/shared_library.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

namespace kernwright {

namespace fs = std::filesystem;

namespace {

constexpr const char* kInstall = "install one with `pip install nvidia-cuda-nvrtc`";
#ifdef __aarch64__
constexpr const char* kCondaTarget = "sbsa-linux";
#else
constexpr const char* kCondaTarget = "x86_64-linux";
#endif
constexpr const char* kOverride = "or set KERNWRIGHT_NVRTC to the library";

// ---- one library

/// A library that was opened, or why it is refused.
struct Attempt {
  std::optional<LoadedNvrtc> loaded;
  std::string outcome;
};

Attempt refused(std::string why) { return {std::nullopt, std::move(why)}; }

/// Fills the table; the name of the first REQUIRED function that is missing, or null.
const char* fill_table(NvrtcApi& api, const SharedLibrary& library) {
  const char* missing = nullptr;
  for_each_nvrtc_slot(api, [&](const NvrtcRow& row, auto& slot) {
    if (void* const address = library.symbol(row.name); address != nullptr) {
      set_function(slot, address);
    } else if (row.need == NvrtcNeed::REQUIRED && missing == nullptr) {
      missing = row.name;
    }
  });
  return missing;
}

/// Opens the builtins library of the same version: beside the library (also behind its links), else
/// by the system's loader when the library came from there. NVRTC itself opens it by its bare name
/// at the first compile and then finds the one that is loaded.
std::string open_builtins(const LoadedNvrtc& nvrtc, bool system, std::string& why) {
  const std::string name = format("libnvrtc-builtins.so.{}.{}", nvrtc.major, nvrtc.minor);
  std::error_code error;
  const fs::path beside = fs::path(nvrtc.path).parent_path() / name;
  const fs::path behind = fs::canonical(nvrtc.path, error).parent_path() / name;
  std::vector<std::string> names;
  for (const fs::path& path : {beside, behind}) {
    if (fs::exists(path, error) && (names.empty() || names.back() != path.string())) {
      names.push_back(path.string());
    }
  }
  if (system) names.push_back(name);
  why = format("its builtins library {} is missing", name);
  for (const std::string& candidate : names) {
    std::string message;
    SharedLibrary builtins = SharedLibrary::open(candidate, message);
    if (!builtins) {
      why = format("its builtins library cannot be opened ({})", message);
      continue;
    }
    std::string path = builtins.path();
    builtins.keep_open();
    return path.empty() ? candidate : path;
  }
  return {};
}

bool read_archs(const NvrtcApi& api, std::vector<int>& archs) {
  int count = 0;
  if (api.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0) return false;
  archs.resize(static_cast<std::size_t>(count));
  return api.nvrtcGetSupportedArchs(archs.data()) == NVRTC_SUCCESS;
}

std::string file_stamp(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return format("{}:{}:{}.{} ", status.st_size, status.st_ino, status.st_mtim.tv_sec,
                status.st_mtim.tv_nsec);
}

Attempt open_library(const std::string& name, bool system) {
  std::string message;
  SharedLibrary library = SharedLibrary::open(name, message);
  if (!library) return refused(format("cannot be opened ({})", message));
  LoadedNvrtc nvrtc;
  nvrtc.path = library.path().empty() ? name : library.path();
  const char* const missing = fill_table(nvrtc.api, library);
  if (nvrtc.api.nvrtcVersion(&nvrtc.major, &nvrtc.minor) != NVRTC_SUCCESS) {
    return refused("does not tell its version, so it is no NVRTC");
  }
  if (nvrtc.major * 1000 + nvrtc.minor * 10 < kOldestNvrtcVersion) {
    return refused(format("is NVRTC {}, but {}.{} or newer is needed", nvrtc.version(),
                          kOldestNvrtcVersion / 1000, kOldestNvrtcVersion % 1000 / 10));
  }
  if (missing != nullptr) return refused(format("has no function {}", missing));
  nvrtc.builtins_path = open_builtins(nvrtc, system, message);
  if (nvrtc.builtins_path.empty())
    return refused(format("is NVRTC {}, but {}", nvrtc.version(), message));
  if (!read_archs(nvrtc.api, nvrtc.archs)) {
    return refused("does not tell the architectures that it compiles for");
  }
  nvrtc.stamp = make_stamp(nvrtc);
  library.keep_open();
  return {std::move(nvrtc), "loaded"};
}

// ---- the search

/// The search's way with the libraries it meets.
enum class Meeting { open, note_first };

class Searcher {
 public:
  explicit Searcher(std::vector<NvrtcCandidate>& candidates, Meeting meeting = Meeting::open)
      : candidates_(candidates), meeting_(meeting) {}

  /// Tries a library; whether it served.
  bool try_library(const char* origin, const std::string& path, bool system = false) {
    if (meeting_ == Meeting::note_first) {
      if (!system && is_regular_file(path)) first = path;
      return !first.empty();
    }
    Attempt attempt = open_library(path, system);
    const std::string shown = attempt.loaded ? attempt.loaded->path : path;
    candidates_.push_back({origin, shown, attempt.outcome});
    if (attempt.loaded) found = std::move(attempt.loaded);
    return found.has_value();
  }

  void note_absent(const char* origin, std::string folder) {
    if (meeting_ == Meeting::open) candidates_.push_back({origin, std::move(folder), "not found"});
  }

  /// Tries every NVRTC of a folder.
  bool try_folder(const char* origin, const std::string& folder) {
    const std::vector<std::string> libraries = nvrtc_libraries_in(folder);
    if (libraries.empty()) note_absent(origin, folder);
    std::vector<fs::path> seen;
    for (const std::string& library : libraries) {
      if (meeting_ == Meeting::note_first) {
        if (try_library(origin, library)) return true;
        continue;
      }
      // A toolkit holds one file under three names.
      std::error_code error;
      const fs::path real = fs::canonical(library, error);
      if (!error && std::find(seen.begin(), seen.end(), real) != seen.end()) continue;
      seen.push_back(real);
      if (try_library(origin, library)) return true;
    }
    return false;
  }

  std::optional<LoadedNvrtc> found;
  std::string first;

 private:
  std::vector<NvrtcCandidate>& candidates_;
  const Meeting meeting_;
};

bool search_toolkits(Searcher& searcher, const std::vector<std::string>& toolkits) {
  for (const std::string& root : toolkits) {
    const bool has_lib64 = is_folder(root + "/lib64");
    if (searcher.try_folder("toolkit", root + (has_lib64 ? "/lib64" : "/lib"))) return true;
  }
  return false;
}

bool search_all(const NvrtcSearch& search, Searcher& searcher) {
  if (!search.override_path.empty()) {
    return is_folder(search.override_path)
               ? searcher.try_folder("KERNWRIGHT_NVRTC", search.override_path)
               : searcher.try_library("KERNWRIGHT_NVRTC", search.override_path);
  }
  if (!search.package_directory.empty()) {
    if (searcher.try_folder("package", search.package_directory + "/lib")) return true;
  }
  for (const std::string& site : search.site_packages) {
    const std::vector<std::string> folders = nvrtc_package_folders(site);
    if (folders.empty()) searcher.note_absent("site-packages", cuda12_package_folder(site));
    for (const std::string& folder : folders) {
      if (searcher.try_folder("site-packages", folder)) return true;
    }
  }
  if (search_toolkits(searcher, search.toolkits)) return true;
  if (!search.system_loader) return false;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
    if (searcher.try_library("system", name, true)) return true;
  }
  return false;
}

std::string failure_message(const NvrtcSearch& search,
                            const std::vector<NvrtcCandidate>& candidates) {
  std::string message =
      search.override_path.empty()
          ? format("NVRTC, the compiler of kernels, was not found; {}, {}. Places searched:",
                   kInstall, kOverride)
          : format("KERNWRIGHT_NVRTC={} names no usable NVRTC; correct it, or unset it and {}:",
                   search.override_path, kInstall);
  for (const NvrtcCandidate& candidate : candidates) {
    message += format("\n  {} ({}): {}", candidate.path, candidate.origin, candidate.outcome);
  }
  return message;
}

/// A library that is there but was refused deserves a word, also when a later one serves.
void report_refused(const std::vector<NvrtcCandidate>& candidates) {
  for (const NvrtcCandidate& candidate : candidates) {
    // Absent names of the system's loader are the usual case.
    if (candidate.origin == "system") continue;
    if (candidate.outcome == "loaded" || candidate.outcome == "not found") continue;
    log(LogLevel::warning, "passed over {}: {}", candidate.path, candidate.outcome);
  }
}

// ---- the one of this process

struct ProcessNvrtc {
  std::mutex mutex;
  std::unique_ptr<const LoadedNvrtc> loaded;
  std::vector<NvrtcCandidate> candidates;
  bool searched = false;
  std::string package_directory;
  std::vector<std::string> site_packages;
};

/// Leaked on purpose: compiled code may be asked for during process exit.
ProcessNvrtc& process() {
  static auto* const instance = new ProcessNvrtc;
  return *instance;
}

NvrtcSearch make_search(const ProcessNvrtc& state) {
  NvrtcSearch search;
  search.override_path = env_text(Env::nvrtc);
  search.package_directory = state.package_directory;
  search.site_packages = state.site_packages;
  for (const char* variable : {"CUDA_PATH", "CUDA_HOME"}) {
    const char* const root = std::getenv(variable);
    if (root != nullptr && *root != '\0') search.toolkits.emplace_back(root);
  }
  if (const char* const conda = std::getenv("CONDA_PREFIX"); conda != nullptr && *conda != '\0') {
    search.toolkits.push_back(format("{}/targets/{}", conda, kCondaTarget));
    search.toolkits.emplace_back(conda);
  }
  search.toolkits.emplace_back("/usr/local/cuda");
  return search;
}

}  // namespace

std::string make_stamp(const NvrtcFacts& nvrtc) {
  return file_stamp(nvrtc.path) + file_stamp(nvrtc.builtins_path);
}

std::string NvrtcFacts::version() const { return format("{}.{}", major, minor); }

NvrtcSearch NvrtcSearch::from_environment() {
  ProcessNvrtc& state = process();
  const std::lock_guard lock(state.mutex);
  return make_search(state);
}

LoadedNvrtc open_nvrtc(const NvrtcSearch& search, std::vector<NvrtcCandidate>* candidates) {
  std::vector<NvrtcCandidate> tried;
  Searcher searcher(tried);
  search_all(search, searcher);
  if (candidates != nullptr) *candidates = tried;
  if (!searcher.found) throw NvrtcNotFound(failure_message(search, tried));
  report_refused(tried);
  searcher.found->candidates = std::move(tried);
  return std::move(*searcher.found);
}

std::string first_nvrtc_candidate(const NvrtcSearch& search) {
  std::vector<NvrtcCandidate> tried;
  Searcher searcher(tried, Meeting::note_first);
  search_all(search, searcher);
  return searcher.first;
}

const LoadedNvrtc* nvrtc_if_loaded() {
  ProcessNvrtc& state = process();
  const std::lock_guard lock(state.mutex);
  return state.loaded.get();
}

const LoadedNvrtc& nvrtc() {
  ProcessNvrtc& state = process();
  const std::lock_guard lock(state.mutex);
  if (!state.loaded) {
    state.searched = true;
    state.loaded =
        std::make_unique<const LoadedNvrtc>(open_nvrtc(make_search(state), &state.candidates));
  }
  return *state.loaded;
}

std::vector<NvrtcCandidate> nvrtc_candidates() {
  ProcessNvrtc& state = process();
  {
    const std::lock_guard lock(state.mutex);
    if (state.searched) return state.candidates;
  }
  try {
    return nvrtc().candidates;
  } catch (const NvrtcNotFound&) {
    const std::lock_guard lock(state.mutex);
    return state.candidates;
  }
}

void set_package_directory(std::string directory) {
  ProcessNvrtc& state = process();
  const std::lock_guard lock(state.mutex);
  state.package_directory = std::move(directory);
}

void set_site_packages(std::vector<std::string> directories) {
  ProcessNvrtc& state = process();
  const std::lock_guard lock(state.mutex);
  state.site_packages = std::move(directories);
}

}  // namespace kernwright
