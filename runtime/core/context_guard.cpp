// Entering a device's context and leaving the caller's as it was found.
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "core/lifecycle.h"

namespace kernwright {
namespace {

/// Makes the caller's context current again. Tried twice: a driver that refuses once, for whatever
/// reason, must not leave the caller on another device.
void restore(Device& device, CUcontext context) noexcept {
  if (!may_call_driver()) return;
  const DriverApi& api = device.driver();
  CUresult result = api.cuCtxSetCurrent(context);
  if (result != CUDA_SUCCESS) result = api.cuCtxSetCurrent(context);
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_DEINITIALIZED) return;
  log(LogLevel::warning, "the caller's context could not be made current again: {}",
      static_cast<int>(result));
}

}  // namespace

ContextGuard::ContextGuard(Device& device, CUcontext context) : device_(device) {
  device.require_usable();
  const CUcontext wanted = context != nullptr ? context : device.context();
  const DriverApi& api = device.driver();
  device.check(api.cuCtxGetCurrent(&previous_), "cuCtxGetCurrent");
  if (previous_ == wanted) return;
  const CUresult result = api.cuCtxSetCurrent(wanted);
  if (result != CUDA_SUCCESS) {
    restore(device, previous_);  // it may have happened all the same
    device.fail(result, "cuCtxSetCurrent");
  }
  changed_ = true;
}

ContextGuard::~ContextGuard() {
  if (changed_) restore(device_, previous_);
}

ReleaseGuard::ReleaseGuard(Device& device) noexcept : device_(device) {
  if (!may_call_driver() || device.lost()) return;
  try {
    const CUcontext wanted = device.context();
    const DriverApi& api = device.driver();
    if (api.cuCtxGetCurrent(&previous_) != CUDA_SUCCESS) return;
    if (previous_ != wanted) {
      changed_ = true;  // also when it failed: it may have happened all the same
      if (api.cuCtxSetCurrent(wanted) != CUDA_SUCCESS) return;
    }
    usable_ = true;
  } catch (...) {
    usable_ = false;  // no context, so there is nothing that could be released in it
  }
}

ReleaseGuard::~ReleaseGuard() {
  if (changed_) restore(device_, previous_);
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
