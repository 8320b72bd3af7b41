// Makes copies of NVRTC and hands out the least busy one.
#include "jit/compile/nvrtc_replicas.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/errors.h"
#include "base/format.h"
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
/// Between two looks for one that is free again.
constexpr std::chrono::milliseconds kLook{10};

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
    NvrtcGate gate;
  };
  /// One library with its copies, which a deque never moves.
  struct Family {
    NvrtcGate* original = nullptr;
    std::deque<Copy> copies;
    unsigned under_way = 0;
    bool is_hopeless = false;

    unsigned size() const { return 1 + static_cast<unsigned>(copies.size()) + under_way; }
    template <typename Wanted>
    unsigned count(Wanted wanted) const {
      const auto of_copies = std::count_if(copies.begin(), copies.end(),
                                           [&](const Copy& c) { return wanted(c.gate); });
      return static_cast<unsigned>(of_copies) + (wanted(*original) ? 1 : 0);
    }
    unsigned blocked() const {
      return count([](const NvrtcGate& gate) { return gate.is_blocked(); });
    }
    unsigned closed() const {
      return count([](const NvrtcGate& gate) { return gate.is_closed(); });
    }
  };

  /// Elsewhere copies only stand in for what is blocked: each has precompiled headers of its own.
  bool works_in_parallel() const { return processors >= kLeastProcessors; }

  /// The caller holds the mutex.
  bool wants_copy(const Family& family) const {
    if (family.is_hopeless) return false;
    const unsigned blocked = family.blocked();
    const unsigned usable = family.size() - blocked;
    if (usable == 0) return blocked <= kMostBlocked;
    if (!works_in_parallel()) return false;
    if (CompileDemand::now() < static_cast<int>(processors + processors / 2)) return false;
    return usable < std::min(processors / kProcessorsEach, kMostLibraries);
  }

  /// Opens one more, without the mutex meanwhile.
  void add_copy(Family& family, const LoadedNvrtc& nvrtc, std::unique_lock<std::mutex>& lock) {
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

  const unsigned processors;
  mutable std::mutex mutex;
  std::map<const void*, Family> families;  ///< by a function of the original

  explicit State(unsigned count) : processors(count) {}
};

NvrtcReplicas::NvrtcReplicas(unsigned processors) : state_(std::make_unique<State>(processors)) {}
NvrtcReplicas::~NvrtcReplicas() = default;

NvrtcGate& NvrtcReplicas::gate_of(const void* id) {
  struct Entry {
    explicit Entry(const void* of) : id(of) {}
    const void* const id;
    std::atomic<pid_t> process = ::getpid();
    NvrtcGate gate;
    Entry* next = nullptr;
  };
  // Grows at its head alone and is read without a lock, since a child could inherit one locked.
  static std::atomic<Entry*> first = nullptr;
  Entry* entry = first.load();
  while (entry != nullptr && entry->id != id) entry = entry->next;
  if (entry == nullptr) {
    entry = new Entry(id);
    entry->next = first.load();
    while (!first.compare_exchange_weak(entry->next, entry)) {}
  }
  pid_t owner = entry->process.load();
  if (owner != ::getpid() && entry->process.compare_exchange_strong(owner, ::getpid())) {
    // What the parent's threads were about in there never comes to an end here.
    if (entry->gate.users_.exchange(0) > 0) entry->gate.close();
    entry->gate.blockers_ = 0;
  }
  return entry->gate;
}

NvrtcReplicas::Lease NvrtcReplicas::lease(const LoadedNvrtc& nvrtc,
                                          const CompileDeadline& deadline) {
  const auto* id = reinterpret_cast<const void*>(nvrtc.api.nvrtcCompileProgram);
  std::unique_lock lock(state_->mutex);
  State::Family& family = state_->families[id];
  if (family.original == nullptr) family.original = &gate_of(id);
  while (true) {
    if (state_->wants_copy(family)) state_->add_copy(family, nvrtc, lock);
    const LoadedNvrtc* library = &nvrtc;
    NvrtcGate* gate = family.original;
    for (State::Copy& copy : family.copies) {
      if (copy.gate.is_blocked()) continue;
      const bool is_busier = state_->works_in_parallel() && gate->users_ > copy.gate.users_;
      if (!gate->is_blocked() && !is_busier) continue;
      library = &copy.library;
      gate = &copy.gate;
    }
    if (!gate->is_blocked()) {
      ++gate->users_;
      return {*library, *gate};
    }
    if (family.closed() == family.size()) {
      throw Error(format(
          "NVRTC {} ({}) cannot be used any more in this process: {} compiles that were told "
          "to stop did not, and {}: start a new process",
          nvrtc.version(), nvrtc.path, family.closed(),
          family.is_hopeless ? "no further copy of it can be opened (is the folder for "
                               "temporary files writable, with 200 MB of room?)"
                             : "no more copies of it are opened"));
    }
    lock.unlock();
    if (deadline.expired()) throw Timeout("the compile was stopped while it waited for NVRTC");
    std::this_thread::sleep_for(kLook);
    lock.lock();
  }
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
