// The states of the precompiled headers and the folder for them.
#include "jit/compile/precompiled_headers.h"

#include <map>
#include <mutex>
#include <set>

#include "base/log.h"
#include "base/per_process.h"
#include "jit/compile/process_folder.h"

namespace kernwright {
namespace {

/// Beyond these, requests are no longer counted: a process that compiles ever other headers gains
/// nothing from any of them.
constexpr std::size_t kMaxKeys = 4096;

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
    const auto* id = reinterpret_cast<const void*>(nvrtc.api.nvrtcSetPCHHeapSize);
    if (prepared.contains(id)) return true;
    std::size_t bytes = 0;
    if (nvrtc.api.nvrtcGetPCHHeapSize(&bytes) != NVRTC_SUCCESS) return false;
    // Address space may be limited; each half of it still serves.
    for (std::size_t wanted = heap_bytes; wanted > bytes; wanted /= 2) {
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
  bool is_full = false;
  std::set<const void*> prepared;  ///< libraries, by a function of theirs
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
  if (!is_ready && (place->second != Stage::seen || state_->is_full)) return {};
  if (!state_->prepare(nvrtc)) {
    place->second = Stage::refused;
    return {};
  }
  const std::string folder = state_->folder_of(key);
  if (folder.empty()) return {};
  if (is_ready) return {PchUse::use, folder, key};
  place->second = Stage::making;
  return {PchUse::make, folder, key};
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
    state_->is_full = true;
    log(LogLevel::debug, "NVRTC's heap for precompiled headers is full: no more are made");
  }
}

std::string PrecompiledHeaders::folder() const {
  const std::lock_guard lock(state_->mutex);
  return state_->top ? state_->top->path() : std::string();
}

PrecompiledHeaders& PrecompiledHeaders::process() { return per_process<PrecompiledHeaders>(); }

}  // namespace kernwright
