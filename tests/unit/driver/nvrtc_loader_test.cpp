// The search for NVRTC, with fake libraries in folders of the test's own and with the real one.
#include "driver/nvrtc_loader.h"

#include "base/errors.h"
#include "base/log.h"
#include "unit/base/environment_guard.h"
#include "unit/core/error_text.h"
#include "unit/site_packages.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

using namespace kernwright;
using test::EnvironmentGuard;
using testing::contains;
namespace fs = std::filesystem;

namespace {

/// A folder removed with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "kernwright-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

  /// Puts a library and, unless `builtins` is empty, its builtins into a sub-folder.
  std::string add(const std::string& folder, const std::string& name, const char* library,
                  const std::string& builtins) const {
    const fs::path where = path_ / folder;
    fs::create_directories(where);
    fs::copy_file(library, where / name);
    if (!builtins.empty()) fs::copy_file(FAKE_NVRTC, where / builtins);
    return (where / name).string();
  }

 private:
  fs::path path_;
};

constexpr const char* kBuiltins = "libnvrtc-builtins.so.13.5";

NvrtcSearch only_site_packages(const TemporaryFolder& folder) {
  NvrtcSearch search;
  search.site_packages = {folder.path().string()};
  search.system_loader = false;
  return search;
}

std::string refusal(const NvrtcSearch& search) {
  try {
    open_nvrtc(search);
  } catch (const NvrtcNotFound& error) {
    return error.what();
  }
  return {};
}

/// Keeps the warnings about refused libraries out of the test's output.
struct QuietLog {
  LogLevel before = log_level();
  QuietLog() { set_log_level(LogLevel::off); }
  ~QuietLog() { set_log_level(before); }
};

}  // namespace

TEST_CASE("nvrtc table: no slot is ever null") {
  const NvrtcApi api;
  for_each_nvrtc_slot(api, [](const NvrtcRow& row, auto& slot) {
    CAPTURE(row.name);
    const bool set = slot != nullptr;
    CHECK(set);
  });
  CHECK(api.nvrtcVersion(nullptr, nullptr) == kNvrtcNotSupported);
  CHECK(api.nvrtcGetErrorString(NVRTC_SUCCESS) != nullptr);
}

TEST_CASE("nvrtc loader: a wheel's library is taken with its builtins") {
  const TemporaryFolder folder;
  const std::string file = folder.add("nvidia/cu13/lib", "libnvrtc.so.13", FAKE_NVRTC, kBuiltins);
  const LoadedNvrtc nvrtc = open_nvrtc(only_site_packages(folder));
  CHECK(nvrtc.version() == "13.5");
  CHECK(nvrtc.path == file);
  CHECK(nvrtc.builtins_path == (folder.path() / "nvidia/cu13/lib" / kBuiltins).string());
  CHECK(nvrtc.archs == std::vector<int>{80, 90});
  REQUIRE(nvrtc.candidates.size() == 1);
  CHECK(nvrtc.candidates[0].origin == "site-packages");
  CHECK(nvrtc.candidates[0].outcome == "loaded");
  CHECK(nvrtc.api.nvrtcGetPTX(nullptr, nullptr) == NVRTC_SUCCESS);
  CHECK(nvrtc.api.nvrtcSetFlowCallback(nullptr, nullptr, nullptr) == kNvrtcNotSupported);
}

TEST_CASE("nvrtc loader: the order is package, site-packages (newest bundle first), toolkit") {
  const QuietLog quiet;
  const TemporaryFolder folder;
  folder.add("site/nvidia/cuda_nvrtc/lib", "libnvrtc.so.12", FAKE_NVRTC, kBuiltins);
  folder.add("site/nvidia/cu9/lib", "libnvrtc.so.9", FAKE_NVRTC, kBuiltins);
  folder.add("site/nvidia/cu13/lib", "libnvrtc.so.13", FAKE_NVRTC, kBuiltins);
  folder.add("toolkit/lib64", "libnvrtc.so.13", FAKE_NVRTC, kBuiltins);
  folder.add("package/lib", "libnvrtc.so.13", FAKE_NVRTC, kBuiltins);
  const std::string root = folder.path().string();
  NvrtcSearch search;
  search.package_directory = root + "/package";
  search.site_packages = {root + "/site"};
  search.toolkits = {root + "/toolkit"};
  search.system_loader = false;
  const std::vector<std::string> order = {
      "/package/lib/libnvrtc.so.13", "/site/nvidia/cu13/lib/libnvrtc.so.13",
      "/site/nvidia/cu9/lib/libnvrtc.so.9", "/site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
      "/toolkit/lib64/libnvrtc.so.13"};
  for (const std::string& expected : order) {
    CAPTURE(expected);
    CHECK(open_nvrtc(search).path == root + expected);
    fs::remove(root + expected);
  }
  const std::string message = refusal(search);
  CHECK(contains(message, "pip install nvidia-cuda-nvrtc"));
  for (const std::string& expected : order) {
    CHECK(contains(message, fs::path(root + expected).parent_path().string()));
  }
}

TEST_CASE("nvrtc loader: missing builtins are named") {
  const TemporaryFolder folder;
  folder.add("nvidia/cu13/lib", "libnvrtc.so.13", FAKE_NVRTC, "");
  const std::string message = refusal(only_site_packages(folder));
  CHECK(contains(message, "libnvrtc-builtins.so.13.5 is missing"));
  // Of another version is as bad as none.
  fs::copy_file(FAKE_NVRTC, folder.path() / "nvidia/cu13/lib/libnvrtc-builtins.so.13.4");
  CHECK(contains(refusal(only_site_packages(folder)), "libnvrtc-builtins.so.13.5 is missing"));
  std::ofstream(folder.path() / "nvidia/cu13/lib" / kBuiltins) << "no library";
  CHECK(contains(refusal(only_site_packages(folder)), "builtins library cannot be opened"));
}

TEST_CASE("nvrtc loader: a library that is too old, partial or no library is passed over") {
  const TemporaryFolder folder;
  const EnvironmentGuard version("FAKE_NVRTC_VERSION", "12.3");
  folder.add("nvidia/cu12/lib", "libnvrtc.so.12", FAKE_NVRTC, "libnvrtc-builtins.so.12.3");
  CHECK(
      contains(refusal(only_site_packages(folder)), "is NVRTC 12.3, but 12.4 or newer is needed"));
  version.set("12.4");
  folder.add("nvidia/cu13/lib", "libnvrtc.so.13", FAKE_NVRTC_PARTIAL, "libnvrtc-builtins.so.12.4");
  CHECK(contains(refusal(only_site_packages(folder)), "has no function nvrtcGetLoweredName"));
  fs::create_directories(folder.path() / "nvidia/cu14/lib");
  std::ofstream(folder.path() / "nvidia/cu14/lib/libnvrtc.so.14") << "text";
  CHECK(contains(refusal(only_site_packages(folder)), "cannot be opened"));
  // The driver's library answers none of NVRTC's names.
  folder.add("nvidia/cu15/lib", "libnvrtc.so.15", FAKE_CUDA, "");
  CHECK(contains(refusal(only_site_packages(folder)), "so it is no NVRTC"));

  // A whole one after all of these serves. The log names each of the others.
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  folder.add("nvidia/cuda_nvrtc/lib", "libnvrtc.so.12", FAKE_NVRTC, "libnvrtc-builtins.so.12.4");
  fs::remove_all(folder.path() / "nvidia/cu12");
  const LoadedNvrtc nvrtc = open_nvrtc(only_site_packages(folder));
  set_log_sink({});
  CHECK(nvrtc.version() == "12.4");
  CHECK(nvrtc.candidates.size() == 4);
  CHECK(lines.size() == 3);
}

TEST_CASE("nvrtc loader: an override is the only place searched") {
  const TemporaryFolder folder;
  const std::string file = folder.add("here", "libnvrtc.so.13", FAKE_NVRTC, kBuiltins);
  NvrtcSearch search = only_site_packages(folder);
  folder.add("nvidia/cu13/lib", "libnvrtc.so.13", FAKE_NVRTC, kBuiltins);
  search.override_path = file;
  CHECK(open_nvrtc(search).path == file);
  search.override_path = (folder.path() / "here").string();
  CHECK(open_nvrtc(search).path == file);
  search.override_path = (folder.path() / "nowhere").string();
  const std::string message = refusal(search);
  CHECK(contains(message, "KERNWRIGHT_NVRTC=" + search.override_path));
  CHECK_FALSE(contains(message, "cu13"));
  std::vector<NvrtcCandidate> candidates;
  CHECK_THROWS_AS(open_nvrtc(search, &candidates), NvrtcNotFound);
  REQUIRE(candidates.size() == 1);
  CHECK(candidates[0].origin == "KERNWRIGHT_NVRTC");
}

TEST_CASE("nvrtc loader: links to one file are tried once") {
  const TemporaryFolder folder;
  folder.add("lib", "libnvrtc.so.13", FAKE_NVRTC, "");
  fs::create_symlink("libnvrtc.so.13", folder.path() / "lib/libnvrtc.so");
  NvrtcSearch search;
  search.override_path = (folder.path() / "lib").string();
  std::vector<NvrtcCandidate> candidates;
  CHECK_THROWS_AS(open_nvrtc(search, &candidates), NvrtcNotFound);
  CHECK(candidates.size() == 1);
}

TEST_CASE("nvrtc loader: builtins behind a link of the library serve") {
  const TemporaryFolder folder;
  const std::string file = folder.add("real", "libnvrtc.so.13", FAKE_NVRTC, kBuiltins);
  fs::create_directories(folder.path() / "nvidia/cu13/lib");
  fs::create_symlink(file, folder.path() / "nvidia/cu13/lib/libnvrtc.so.13");
  const LoadedNvrtc nvrtc = open_nvrtc(only_site_packages(folder));
  CHECK(nvrtc.builtins_path == (folder.path() / "real" / kBuiltins).string());
}

TEST_CASE("nvrtc loader: the environment names the override and the toolkits") {
  const EnvironmentGuard nvrtc_path("KERNWRIGHT_NVRTC", "/some/where");
  const EnvironmentGuard cuda_path("CUDA_PATH", "/opt/a");
  const EnvironmentGuard cuda_home("CUDA_HOME", "/opt/b");
  const EnvironmentGuard conda("CONDA_PREFIX", "");
  const NvrtcSearch search = NvrtcSearch::from_environment();
  CHECK(search.override_path == "/some/where");
  CHECK(search.toolkits == std::vector<std::string>{"/opt/a", "/opt/b", "/usr/local/cuda"});
  CHECK(search.system_loader);
}

TEST_CASE("nvrtc loader: packages of conda lie below its environment") {
  const TemporaryFolder folder;
  folder.add("targets/x86_64-linux/lib", "libnvrtc.so.13", FAKE_NVRTC, kBuiltins);
  folder.add("targets/sbsa-linux/lib", "libnvrtc.so.13", FAKE_NVRTC, kBuiltins);
  const EnvironmentGuard cuda_path("CUDA_PATH", "");
  const EnvironmentGuard cuda_home("CUDA_HOME", "");
  const EnvironmentGuard conda("CONDA_PREFIX", folder.path().c_str());
  NvrtcSearch search = NvrtcSearch::from_environment();
  REQUIRE(search.toolkits.size() == 3);
  search.override_path.clear();
  search.site_packages.clear();
  search.system_loader = false;
  const LoadedNvrtc nvrtc = open_nvrtc(search);
  CHECK(nvrtc.path.starts_with(folder.path().string() + "/targets/"));
}

namespace {

/// Compiles a kernel for each kind of output. Some need the builtins library, too.
void check_real(const LoadedNvrtc& nvrtc) {
  CAPTURE(nvrtc.path);
  CHECK(nvrtc.major * 1000 + nvrtc.minor * 10 >= kOldestNvrtcVersion);
  REQUIRE_FALSE(nvrtc.archs.empty());
  const NvrtcApi& api = nvrtc.api;
  nvrtcProgram program = nullptr;
  REQUIRE(api.nvrtcCreateProgram(&program,
                                 "template <class T> __global__ void scale(T* x, T a) {"
                                 " x[threadIdx.x] *= a; }",
                                 "scale.cu", 0, nullptr, nullptr) == NVRTC_SUCCESS);
  CHECK(api.nvrtcAddNameExpression(program, "scale<float>") == NVRTC_SUCCESS);
  const std::string arch = "-arch=sm_" + std::to_string(nvrtc.archs.back());
  const char* const options[] = {arch.c_str()};
  CHECK(api.nvrtcCompileProgram(program, 1, options) == NVRTC_SUCCESS);
  const char* lowered = nullptr;
  CHECK(api.nvrtcGetLoweredName(program, "scale<float>", &lowered) == NVRTC_SUCCESS);
  CHECK(std::string(lowered) == "_Z5scaleIfEvPT_S0_");
  std::size_t size = 0;
  CHECK(api.nvrtcGetCUBINSize(program, &size) == NVRTC_SUCCESS);
  CHECK(size > 100);
  CHECK(api.nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);
  CHECK(std::string(api.nvrtcGetErrorString(NVRTC_ERROR_COMPILATION)) == "NVRTC_ERROR_COMPILATION");
}

}  // namespace

TEST_CASE("nvrtc loader: the real library of the Python packages compiles") {
  NvrtcSearch search;
  search.site_packages = {testing::site_packages()};
  search.system_loader = false;
  if (!fs::exists(fs::path(testing::site_packages()) / "nvidia")) {
    MESSAGE("no nvidia-* packages in ", testing::site_packages(), ": not tested");
    return;
  }
  check_real(open_nvrtc(search));
}

TEST_CASE("nvrtc loader: the real library of a toolkit compiles, beside another one") {
  NvrtcSearch search;
  search.toolkits = NvrtcSearch::from_environment().toolkits;
  search.system_loader = false;
  const bool has_one = std::any_of(
      search.toolkits.begin(), search.toolkits.end(),
      [](const std::string& root) { return fs::exists(fs::path(root) / "lib64/libnvrtc.so"); });
  if (!has_one) {
    CHECK_THROWS_AS(open_nvrtc(search), NvrtcNotFound);
    MESSAGE("no toolkit on this machine: only its absence was tested");
    return;
  }
  check_real(open_nvrtc(search));
}

TEST_CASE("nvrtc loader: the process's NVRTC is found once, or every place is listed") {
  set_package_directory("/nonexistent/kernwright");
  set_site_packages({testing::site_packages()});
  try {
    const LoadedNvrtc& first = nvrtc();
    CHECK(&nvrtc() == &first);
    CHECK(nvrtc_candidates().back().outcome == "loaded");
    check_real(first);
  } catch (const NvrtcNotFound& error) {
    CHECK(contains(error.what(), "/nonexistent/kernwright/lib"));
  }
  CHECK_FALSE(nvrtc_candidates().empty());
}
