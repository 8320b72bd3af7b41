// Makes copies of NVRTC and hands out the least busy one.
#include "jit/compile/nvrtc_replicas.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/errors.h"
#include "base/log.h"
#include "base/per_process.h"
#include "base/whole_file.h"
#include "jit/compile/process_folder.h"

namespace kernwright {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kLeastProcessors = 8;
constexpr unsigned kProcessorsEach = 3;  ///< a front end keeps about as many of them busy
constexpr unsigned kMostLibraries = 6;

/// The library opened once more, from a copy of its file.
std::optional<LoadedNvrtc> open_copy(const LoadedNvrtc& original) {
  try {
    const ProcessFolder folder("nvrtc");
    if (folder.path().empty()) return std::nullopt;
    const fs::path root = folder.path();
    const fs::path library = root / fs::path(original.path).filename();
    if (!copy_whole_file(original.path, library.string())) {
      log(LogLevel::debug, "NVRTC cannot be opened a second time: {} cannot be copied to {}",
          original.path, library.string());
      return std::nullopt;
    }
    fs::create_symlink(fs::canonical(original.builtins_path),
                       root / fs::path(original.builtins_path).filename());
    NvrtcSearch search;
    search.override_path = library.string();
    search.system_loader = false;
    LoadedNvrtc copy = open_nvrtc(search);
    if (copy.api.nvrtcCompileProgram == original.api.nvrtcCompileProgram) return std::nullopt;
    copy.path = original.path;  // messages name the file that stays
    copy.builtins_path = original.builtins_path;
    return copy;
  } catch (const Error& error) {
    log(LogLevel::debug, "NVRTC cannot be opened a second time: {}", error.what());
  } catch (const fs::filesystem_error& error) {
    log(LogLevel::debug, "NVRTC cannot be opened a second time: {}", error.what());
  }
  return std::nullopt;
}

}  // namespace

std::atomic<int>& CompileDemand::count() noexcept {
  static std::atomic<int> value = 0;
  return value;
}

struct NvrtcReplicas::State {
  struct Copy {
    LoadedNvrtc library;
    std::atomic<int> users = 0;
  };
  /// The copies of one library; a deque never moves them.
  struct Family {
    std::atomic<int> users = 0;  ///< of the original
    std::deque<Copy> copies;
    unsigned under_way = 0;
    bool is_hopeless = false;
  };

  /// The caller holds the mutex.
  bool wants_copy(const Family& family) const {
    if (processors < kLeastProcessors || family.is_hopeless) return false;
    if (CompileDemand::now() < static_cast<int>(processors + processors / 2)) return false;
    const unsigned wanted = std::min(processors / kProcessorsEach, kMostLibraries);
    return 1 + family.copies.size() + family.under_way < wanted;
  }

  const unsigned processors;
  mutable std::mutex mutex;
  std::map<const void*, Family> families;  ///< by a function of the original

  explicit State(unsigned count) : processors(count) {}
};

NvrtcReplicas::NvrtcReplicas(unsigned processors) : state_(std::make_unique<State>(processors)) {}
NvrtcReplicas::~NvrtcReplicas() = default;

NvrtcReplicas::Lease NvrtcReplicas::lease(const LoadedNvrtc& nvrtc) {
  std::unique_lock lock(state_->mutex);
  const auto* id = reinterpret_cast<const void*>(nvrtc.api.nvrtcCompileProgram);
  State::Family& family = state_->families[id];
  if (state_->wants_copy(family)) {
    ++family.under_way;
    lock.unlock();
    std::optional<LoadedNvrtc> copy = open_copy(nvrtc);
    lock.lock();
    --family.under_way;
    if (copy) {
      family.copies.emplace_back().library = std::move(*copy);
    } else {
      family.is_hopeless = true;
    }
  }
  const LoadedNvrtc* library = &nvrtc;
  std::atomic<int>* users = &family.users;
  for (State::Copy& copy : family.copies) {
    if (copy.users >= *users) continue;
    library = &copy.library;
    users = &copy.users;
  }
  ++*users;
  return {*library, *users};
}

unsigned NvrtcReplicas::copies() const {
  const std::lock_guard lock(state_->mutex);
  unsigned count = 0;
  for (const auto& [id, family] : state_->families) {
    count += static_cast<unsigned>(family.copies.size());
  }
  return count;
}

NvrtcReplicas& NvrtcReplicas::process() {
  return per_process<NvrtcReplicas>(std::thread::hardware_concurrency());
}

}  // namespace kernwright
