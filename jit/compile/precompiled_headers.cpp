// The states of the precompiled headers and the folder for them.
#include "jit/compile/precompiled_headers.h"

#include <sys/mman.h>

#include <map>
#include <mutex>
#include <set>

#include "base/log.h"
#include "base/per_process.h"
#include "jit/compile/process_folder.h"

namespace kernwright {
namespace {

/// Above this number, requests are no longer counted: a process with ever new headers gains nothing
/// from any of them.
constexpr std::size_t kMaxKeys = 4096;

/// Largest share of the remaining address space for the heap: the program needs the rest.
constexpr std::size_t kShareLeft = 4;

bool has_address_space(std::size_t bytes) noexcept {
  void* const place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return false;
  munmap(place, bytes);
  return true;
}

const void* id_of(const LoadedNvrtc& nvrtc) {
  return reinterpret_cast<const void*>(nvrtc.api.nvrtcSetPCHHeapSize);
}

enum class Stage { seen, making, ready, refused };

}  // namespace

const char* pch_use_name(PchUse use) noexcept {
  switch (use) {
    case PchUse::make:
      return "made";
    case PchUse::use:
      return "used";
    default:
      return "not used";
  }
}

struct PrecompiledHeaders::State {
  /// Enlarges the heap of a library, before its first precompiled header: a later change would
  /// throw all of them away. False where this NVRTC knows no precompiled headers.
  bool prepare(const LoadedNvrtc& nvrtc) {
    const void* const id = id_of(nvrtc);
    if (prepared.contains(id)) return true;
    std::size_t bytes = 0;
    if (nvrtc.api.nvrtcGetPCHHeapSize(&bytes) != NVRTC_SUCCESS) return false;
    // Address space may be limited; each half of it still serves. NVRTC finds out too late.
    for (std::size_t wanted = heap_bytes; wanted > bytes; wanted /= 2) {
      if (!has_address_space(wanted * kShareLeft)) continue;
      if (nvrtc.api.nvrtcSetPCHHeapSize(wanted) == NVRTC_SUCCESS) break;
    }
    prepared.insert(id);
    return true;
  }

  /// The folder for one key, made when missing; empty when it cannot be made.
  std::string folder_of(const Hash128& key) {
    if (!top) top = std::make_unique<ProcessFolder>("pch");
    return top->subfolder(key.to_hex());
  }

  std::mutex mutex;
  std::size_t heap_bytes = 0;
  std::set<const void*> prepared;  ///< libraries, by a function of theirs
  std::set<const void*> full;      ///< those whose heap has no more room
  std::map<Hash128, Stage> stages;
  std::unique_ptr<ProcessFolder> top;
};

PrecompiledHeaders::PrecompiledHeaders(std::size_t heap_bytes) : state_(std::make_unique<State>()) {
  state_->heap_bytes = heap_bytes;
}

PrecompiledHeaders::~PrecompiledHeaders() = default;

PchPlan PrecompiledHeaders::plan(const LoadedNvrtc& nvrtc, const Hash128& key, Tristate wanted) {
  if (wanted == Tristate::off) return {};
  const std::lock_guard lock(state_->mutex);
  if (!state_->stages.contains(key) && state_->stages.size() >= kMaxKeys) return {};
  const auto [place, is_first] = state_->stages.emplace(key, Stage::seen);
  if (is_first && wanted == Tristate::automatic) return {};
  const bool is_ready = place->second == Stage::ready;
  if (!is_ready && (place->second != Stage::seen || state_->full.contains(id_of(nvrtc)))) return {};
  if (!state_->prepare(nvrtc)) {
    place->second = Stage::refused;
    return {};
  }
  const std::string folder = state_->folder_of(key);
  if (folder.empty()) return {};
  if (is_ready) return {PchUse::use, folder, key, id_of(nvrtc)};
  place->second = Stage::making;
  return {PchUse::make, folder, key, id_of(nvrtc)};
}

void PrecompiledHeaders::done(const PchPlan& plan, nvrtcResult create_status, bool was_used) {
  if (plan.use == PchUse::none) return;
  const std::lock_guard lock(state_->mutex);
  Stage& stage = state_->stages[plan.key];
  if (was_used || create_status == NVRTC_SUCCESS) {
    stage = Stage::ready;
    return;
  }
  // Never the slow path twice.
  stage = Stage::refused;
  if (create_status == NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED) {
    state_->full.insert(plan.library);
    log(LogLevel::debug, "NVRTC has no more memory for precompiled headers: no more are made");
  }
}

std::string PrecompiledHeaders::folder() const {
  const std::lock_guard lock(state_->mutex);
  return state_->top ? state_->top->path() : std::string();
}

PrecompiledHeaders& PrecompiledHeaders::process() { return per_process<PrecompiledHeaders>(); }

}  // namespace kernwright
