// Finds NVRTC libraries once per test run.
#include "unit/jit/jit_fixture.h"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "base/errors.h"
#include "jit/compile/target.h"
#include "unit/site_packages.h"

namespace kernwright::testing {
namespace {

void try_search(std::vector<LoadedNvrtc>& found, const NvrtcSearch& search) {
  try {
    LoadedNvrtc nvrtc = open_nvrtc(search);
    const bool known = std::any_of(found.begin(), found.end(), [&](const LoadedNvrtc& other) {
      return other.version() == nvrtc.version();
    });
    if (!known) found.push_back(std::move(nvrtc));
  } catch (const NvrtcNotFound&) {
    // This place has none.
  }
}

std::vector<LoadedNvrtc> search_all() {
  std::vector<LoadedNvrtc> found;
  const NvrtcSearch all = NvrtcSearch::from_environment();
  NvrtcSearch given;
  given.system_loader = false;
  given.override_path = all.override_path;
  if (!given.override_path.empty()) try_search(found, given);
  NvrtcSearch wheel;
  wheel.system_loader = false;
  wheel.site_packages = {site_packages()};
  try_search(found, wheel);
  NvrtcSearch toolkit;
  toolkit.system_loader = false;
  toolkit.toolkits = all.toolkits;
  try_search(found, toolkit);
  if (found.empty()) try_search(found, NvrtcSearch{});
  if (found.empty()) throw std::runtime_error("no NVRTC: pip install nvidia-cuda-nvrtc");
  return found;
}

}  // namespace

const std::vector<LoadedNvrtc>& real_nvrtcs() {
  static const std::vector<LoadedNvrtc> found = search_all();
  return found;
}

std::vector<LoadedNvrtc> nvrtcs_from(int major, int minor) {
  std::vector<LoadedNvrtc> result;
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    if (std::pair(nvrtc.major, nvrtc.minor) >= std::pair(major, minor)) result.push_back(nvrtc);
  }
  return result;
}

const LoadedNvrtc& newest_nvrtc() {
  const auto& all = real_nvrtcs();
  return *std::max_element(all.begin(), all.end(), [](const LoadedNvrtc& a, const LoadedNvrtc& b) {
    return std::pair(a.major, a.minor) < std::pair(b.major, b.minor);
  });
}

void use_test_nvrtc() { set_site_packages({site_packages()}); }

CompileRequest request_for(const std::string& text, std::vector<std::string> names, CodeKind kind) {
  CompileRequest request;
  request.source.text = text;
  request.target = {kind, "sm_80", kind == CodeKind::ptx ? "compute_80" : "sm_80"};
  request.declared = scan_source(request.source.text);
  request.with_declared = names.empty();
  request.names = std::move(names);
  return request;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "kernwright-jit-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::filesystem::path TemporaryFolder::write(const std::string& name, std::string_view text) const {
  const std::filesystem::path file = path_ / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

}  // namespace kernwright::testing
