// Finding NVTX's library, and the calls that ranges need.
#include "driver/nvtx.h"

#include "driver/nvrtc_loader.h"
#include "driver/shared_library.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>

namespace kernwright {
namespace {

namespace fs = std::filesystem;

// The first is of NVTX 3 (CUDA 12.8 and newer), the second of the versions before.
constexpr const char* kLibraries[] = {"libnvtx3interop.so.1", "libnvToolsExt.so.1"};

/// nvtxEventAttributes_t of NVTX 2 and 3, the part that a message needs.
struct EventAttributes {
  std::uint16_t version = 3;
  std::uint16_t size = sizeof(EventAttributes);
  std::uint32_t category = 0;
  std::int32_t color_type = 0;
  std::uint32_t color = 0;
  std::int32_t payload_type = 0;
  std::int32_t reserved = 0;
  std::uint64_t payload = 0;
  std::int32_t message_type = 1;  // NVTX_MESSAGE_TYPE_ASCII
  const char* message = nullptr;
};
static_assert(sizeof(EventAttributes) == 48);

/// Folders of the packages that carry NVTX, and of the toolkits.
std::vector<std::string> usual_folders() {
  const NvrtcSearch search = NvrtcSearch::from_environment();
  std::vector<std::string> folders;
  for (const std::string& site : search.site_packages) {
    std::error_code error;
    for (fs::directory_iterator it(fs::path(site) / "nvidia", error), end; !error && it != end;
         it.increment(error)) {
      folders.push_back((it->path() / "lib").string());
    }
  }
  for (const std::string& toolkit : search.toolkits) {
    folders.push_back((fs::path(toolkit) / "lib64").string());
  }
  return folders;
}

/// Files to open, in this order: by name through the system's loader, then existing files.
std::vector<std::string> candidates(const std::vector<std::string>& folders) {
  std::vector<std::string> all(std::begin(kLibraries), std::end(kLibraries));
  for (const std::string& folder : folders) {
    for (const char* name : kLibraries) {
      const fs::path file = fs::path(folder) / name;
      std::error_code missing;
      if (fs::exists(file, missing)) all.push_back(file.string());
    }
  }
  return all;
}

}  // namespace

std::optional<Nvtx> Nvtx::open(const std::vector<std::string>& folders) {
  std::string error;
  for (const std::string& candidate : candidates(folders)) {
    SharedLibrary library = SharedLibrary::open(candidate, error);
    if (!library) continue;
    Nvtx found;
    void* (*create)(const char*) = nullptr;
    set_function(create, library.symbol("nvtxDomainCreateA"));
    set_function(found.push_, library.symbol("nvtxDomainRangePushEx"));
    set_function(found.pop_, library.symbol("nvtxDomainRangePop"));
    if (create == nullptr || found.push_ == nullptr || found.pop_ == nullptr) continue;
    found.domain_ = create("Kernwright");
    if (found.domain_ == nullptr) continue;  // the tool listens to another copy, or there is none
    library.keep_open();
    return found;
  }
  return std::nullopt;
}

std::optional<Nvtx> Nvtx::find_listener() noexcept {
  const char* const tool = std::getenv("NVTX_INJECTION64_PATH");
  if (tool == nullptr || *tool == '\0') return std::nullopt;
  try {
    return open(usual_folders());
  } catch (...) {
    return std::nullopt;  // ranges are no reason for a program to fail
  }
}

void Nvtx::push(const char* name) const noexcept {
  EventAttributes attributes;
  attributes.message = name;
  push_(domain_, &attributes);
}

void Nvtx::pop() const noexcept { pop_(domain_); }

}  // namespace kernwright
