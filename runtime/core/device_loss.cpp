// When a context cannot be used any more: what is said from then on, and how a device starts anew.
#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/device_registry.h"
#include "core/device_state.h"
#include "core/graph/capture.h"
#include "core/lifecycle.h"

#include <utility>

namespace kernwright {

bool is_sticky(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
      return true;
    default:
      return false;
  }
}

bool Device::lost() const noexcept {
  return state_->loss.load(std::memory_order_acquire) != nullptr;
}

void Device::require_usable() const {
  require_driver_allowed();
  if (lost()) [[unlikely]] {
    throw_lost();
  }
}

void Device::throw_lost() const {
  const DeviceLoss* const loss = state_->loss.load(std::memory_order_acquire);
  if (loss == nullptr) {  // a reset that the driver refused has just ended
    throw DeviceLost(format("{} was about to be reset", identify()),
                     CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED");
  }
  const char* name = result_name(loss->code);
  throw DeviceLost(loss->message, loss->code, name != nullptr ? name : "");
}

bool Device::latch_if_sticky(CUresult result, const char* call) noexcept {
  if (simulated_ || !is_sticky(result)) return false;
  try {
    const std::string launches = history_.describe();  // before the lock: it asks foreign code
    auto loss = std::make_unique<DeviceLoss>();
    loss->code = result;
    loss->message = format(
        "{} is lost: {} reported {}. {}{}{}The context cannot be used any more: start a new "
        "process, or try device.reset() and make everything on it anew. To find the cause, run the "
        "kernel with KERNWRIGHT_DEVICE=sim or under compute-sanitizer",
        identify(), call, describe_result(api_, result),
        launches.empty() ? "" : "Last launches, newest first: ", launches,
        launches.empty() ? "" : ". ");
    const std::lock_guard lock(state_->mutex);
    if (lost()) return true;
    state_->losses.push_back(std::move(loss));
    state_->loss.store(state_->losses.back().get(), std::memory_order_release);
  } catch (...) {
    return false;  // no memory for the message: the next call on the device meets the same result
  }
  return true;
}

Device& Device::newest() noexcept {
  Device* device = this;
  while (Device* next = device->state_->successor.load(std::memory_order_acquire)) device = next;
  return *device;
}

Device& Device::reset() {
  require_driver_allowed();
  const std::lock_guard one_at_a_time(state_->resetting);
  if (state_->successor.load(std::memory_order_acquire) != nullptr) return newest();
  if (!lost()) refuse_during_capture(*this, "a reset of the device");
  auto loss = std::make_unique<DeviceLoss>();
  const DeviceLoss* const before = state_->loss.load(std::memory_order_acquire);
  loss->code = before != nullptr ? before->code : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  loss->message = format(
      "{} was reset: what was made on it before cannot be used any more; ask for the device again "
      "and make it anew{}{}",
      identify(), before != nullptr ? ". Before that: " : "",
      before != nullptr ? before->message : "");
  {
    const std::lock_guard lock(state_->mutex);
    state_->losses.push_back(std::move(loss));
    state_->loss.store(state_->losses.back().get(), std::memory_order_release);
  }
  try {
    reset_context();
  } catch (...) {
    state_->loss.store(before, std::memory_order_release);
    throw;
  }
  require_new_context(before);
  Device& fresh = registry_.replace(*this);  // when this throws, another reset() tries again
  state_->successor.store(&fresh, std::memory_order_release);
  return fresh;
}

/// A reset that went well is no promise: a driver may answer with the old error from then on (CUDA
/// 13.0 does after every sticky error). Only a new context proves the reset.
void Device::require_new_context(const DeviceLoss* before) {
  CUcontext context = nullptr;
  const CUresult result = api_.cuDevicePrimaryCtxRetain(&context, device_);
  if (result == CUDA_SUCCESS) {
    api_.cuDevicePrimaryCtxRelease(device_);
    return;
  }
  auto loss = std::make_unique<DeviceLoss>();
  loss->code = before != nullptr ? before->code : result;
  loss->message = format(
      "{} cannot be reset: the driver makes no new context in this process: {}. Start a new "
      "process{}{}",
      identify(), describe_result(api_, result), before != nullptr ? ". Before that: " : "",
      before != nullptr ? before->message : "");
  const std::string message = loss->message;
  {
    const std::lock_guard lock(state_->mutex);
    state_->losses.push_back(std::move(loss));
    state_->loss.store(state_->losses.back().get(), std::memory_order_release);
  }
  const char* name = result_name(result);
  throw DeviceLost(message, result, name != nullptr ? name : "");
}

/// Leaves no context of the device behind, and none of it current in this thread.
void Device::reset_context() {
  const CUcontext old = state_->context.load(std::memory_order_acquire);
  CUcontext current = nullptr;
  if (old != nullptr && api_.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == old) {
    api_.cuCtxSetCurrent(nullptr);
  }
  const CUresult result = api_.cuDevicePrimaryCtxReset(device_);
  if (result != CUDA_SUCCESS) {
    if (current == old && old != nullptr) api_.cuCtxSetCurrent(old);
    const char* name = result_name(result);
    throw DeviceLost(format("{} cannot be reset: cuDevicePrimaryCtxReset: {}. Start a new process",
                            identify(), describe_result(api_, result)),
                     result, name != nullptr ? name : "");
  }
  if (old == nullptr) return;
  // A reset takes the contents and leaves the count: what this object retained is given back.
  const CUresult released = api_.cuDevicePrimaryCtxRelease(device_);
  if (released != CUDA_SUCCESS) {
    log(LogLevel::warning, "the old context of {} could not be given back: {}", identify(),
        describe_result(api_, released));
  }
  state_->context.store(nullptr, std::memory_order_release);
}

}  // namespace kernwright
