// Entering a device's context and leaving the caller's as it was found.
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "core/lifecycle.h"

namespace kernwright {

ContextGuard::ContextGuard(Device& device) : device_(device) {
  device.require_usable();
  const CUcontext wanted = device.context();
  const DriverApi& api = device.driver();
  device.check(api.cuCtxGetCurrent(&previous_), "cuCtxGetCurrent");
  if (previous_ == wanted) return;
  device.check(api.cuCtxSetCurrent(wanted), "cuCtxSetCurrent");
  changed_ = true;
}

ContextGuard::~ContextGuard() {
  if (!changed_ || !may_call_driver()) return;
  const CUresult result = device_.driver().cuCtxSetCurrent(previous_);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED) {
    log(LogLevel::warning, "the caller's context could not be made current again: {}",
        static_cast<int>(result));
  }
}

ReleaseGuard::ReleaseGuard(Device& device) noexcept : device_(device) {
  if (!may_call_driver() || device.lost()) return;
  try {
    const CUcontext wanted = device.context();
    const DriverApi& api = device.driver();
    if (api.cuCtxGetCurrent(&previous_) != CUDA_SUCCESS) return;
    if (previous_ != wanted) {
      if (api.cuCtxSetCurrent(wanted) != CUDA_SUCCESS) return;
      changed_ = true;
    }
    usable_ = true;
  } catch (...) {
    usable_ = false;  // no context, so there is nothing that could be released in it
  }
}

ReleaseGuard::~ReleaseGuard() {
  if (changed_ && may_call_driver()) device_.driver().cuCtxSetCurrent(previous_);
}

void ReleaseGuard::report(CUresult result, const char* call) noexcept {
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_DEINITIALIZED) return;
  device_.latch_if_sticky(result, call);
  try {
    log_release_failure(format("{} on {}", call, device_.identify()),
                        describe_result(device_.driver(), result));
  } catch (...) {
    log_release_failure(call, "the driver refused");
  }
}

}  // namespace kernwright
