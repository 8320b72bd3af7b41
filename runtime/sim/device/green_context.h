// Green contexts: streams whose kernels run on some of a device's multiprocessors.
#pragma once

#include "sim/device/objects.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace kernwright::sim {

/// A green context, from its creation to its destruction.
struct GreenContext {
  std::shared_ptr<Context> context;  ///< the primary context
  CUgreenCtx handle = nullptr;
  std::vector<std::uint32_t> processors;  ///< values of %smid, in ascending order
  std::atomic<bool> is_context{false};    ///< cuCtxFromGreenCtx was called
  std::atomic<bool> destroyed{false};
  /// Good for calls where `is_context`.
  CUcontext as_context() const noexcept { return reinterpret_cast<CUcontext>(handle); }
};

/// What cuDevResourceGenerateDesc made: the multiprocessors of a green context to be.
struct ResourceDescriptor {
  int device = 0;
  std::vector<std::uint32_t> processors;
};

/// Multiprocessors for a kernel: those of the green context, else (null) of the whole device.
int processor_count(const GreenContext* green);

}  // namespace kernwright::sim
