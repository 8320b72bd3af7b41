// When a compile makes or uses a precompiled header of NVRTC's.
#pragma once

#include "base/hash.h"
#include "driver/nvrtc_loader.h"
#include "jit/source/program_options.h"

#include <cstddef>
#include <memory>
#include <string>

namespace kernwright {

enum class PchUse { none, make, use };

/// "not used", "made" or "used".
const char* pch_use_name(PchUse use) noexcept;

/// The plan for one compile. `folder` is for NVRTC's --pch-dir.
struct PchPlan {
  PchUse use = PchUse::none;
  std::string folder;
  Hash128 key{};
  const void* library = nullptr;  ///< tells apart the NVRTCs that are open
};

/// The precompiled headers of the process. Making one costs as much as one or two compiles of the
/// headers. So the second request for the same headers makes it, or the first if the option says
/// so. Each NVRTC keeps its own in a heap enlarged in advance; with a full or unavailable heap it
/// makes no more. Each has its own folder, because NVRTC does not notice changed contents of a
/// header. The folders lie below a private folder, removed at the end of the process. Thread-safe.
class PrecompiledHeaders {
 public:
  /// `heap_bytes`: address space for all of them; only used parts become memory.
  explicit PrecompiledHeaders(std::size_t heap_bytes = std::size_t{4} << 30);
  ~PrecompiledHeaders();
  PrecompiledHeaders(const PrecompiledHeaders&) = delete;
  PrecompiledHeaders& operator=(const PrecompiledHeaders&) = delete;

  /// `key` stands for everything with influence on the compiled headers: options, contents, NVRTC.
  /// While one thread makes one, others compile without.
  PchPlan plan(const LoadedNvrtc& nvrtc, const Hash128& key, Tristate wanted);
  /// The outcome of a compile with this plan: the status of nvrtcGetPCHCreateStatus, and whether
  /// the log mentions a use. Call it for each plan except `none`.
  void done(const PchPlan& plan, nvrtcResult create_status, bool was_used);

  /// The folder of this process below the one for temporary files; empty until it is needed.
  std::string folder() const;

  /// The object of the process; a forked child begins with an empty one.
  static PrecompiledHeaders& process();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
