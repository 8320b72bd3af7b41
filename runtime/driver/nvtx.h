// Named ranges for the tools that listen to NVTX: Nsight Systems, Nsight Compute.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kernwright {

/// NVTX's library, opened when a tool listens. Ranges stand in its domain "Kernwright".
class Nvtx {
 public:
  /// Null unless a tool has set NVTX_INJECTION64_PATH, as they do for the programs they start, and
  /// the library was found. Looks once; thread-safe. Never throws.
  static const Nvtx* listener() noexcept {
    static const std::optional<Nvtx> instance = find_listener();
    return instance ? &*instance : nullptr;
  }

  /// The first library that a tool listens to: by the system's loader, then in `folders`; empty
  /// when there is none. The library stays open for good.
  static std::optional<Nvtx> open(const std::vector<std::string>& folders);

  void push(const char* name) const noexcept;  ///< a range of this thread begins, inside the others
  void pop() const noexcept;                   ///< the innermost one ends

 private:
  Nvtx() = default;
  static std::optional<Nvtx> find_listener() noexcept;

  int (*push_)(void* domain, const void* attributes) = nullptr;
  int (*pop_)(void* domain) = nullptr;
  void* domain_ = nullptr;
};

/// A range from its construction to its end, on one thread. Costs one load when no tool listens.
class NvtxRange {
 public:
  explicit NvtxRange(const char* name) noexcept : tool_(Nvtx::listener()) {
    if (tool_ != nullptr) [[unlikely]]
      tool_->push(name);
  }
  ~NvtxRange() {
    if (tool_ != nullptr) [[unlikely]]
      tool_->pop();
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  const Nvtx* tool_;
};

}  // namespace kernwright
