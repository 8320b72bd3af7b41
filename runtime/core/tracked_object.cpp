// Waiting for the work that uses an object, then ending it.
#include "core/tracked_object.h"

#include "base/errors.h"
#include "base/log_sink.h"
#include "core/device.h"
#include "core/graph/capture.h"

#include <utility>

namespace kernwright {

/// Ends the driver's object when the last reference goes, which may be at a capture's end.
struct TrackedObject::Handle {
  Device& device;
  std::uint64_t value;
  Destroy destroy;
  std::string name;
  std::shared_ptr<const void> owner;

  Handle(Device& its_device, std::uint64_t its_value, Destroy its_destroy, std::string its_name,
         std::shared_ptr<const void> its_owner)
      : device(its_device),
        value(its_value),
        destroy(its_destroy),
        name(std::move(its_name)),
        owner(std::move(its_owner)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    const ReleaseGuard guard(device);
    if (!guard) return;
    const RelaxedCapture relaxed(device);
    const CUresult result = destroy(device.driver(), value);
    if (result == CUDA_SUCCESS) return;
    const char* const text = result_name(result);
    log_release_failure(name, text != nullptr ? text : "unknown error");
  }
};

TrackedObject::TrackedObject(Device& device, std::uint64_t handle, Destroy destroy,
                             std::string name, std::shared_ptr<const void> owner)
    : device_(device),
      handle_(handle),
      name_(name),
      owned_(std::make_shared<Handle>(device, handle, destroy, std::move(name), std::move(owner))) {
}

std::shared_ptr<TrackedObject> track_object(Device& device, std::uint64_t handle,
                                            TrackedObject::Destroy destroy, std::string name,
                                            std::shared_ptr<const void> owner) {
  try {
    return std::make_shared<TrackedObject>(device, handle, destroy, std::move(name),
                                           std::move(owner));
  } catch (...) {
    destroy(device.driver(), handle);
    throw;
  }
}

TrackedObject::~TrackedObject() {
  const ReleaseGuard guard(device_);
  if (!guard) return;
  try {
    KeptObjects released;
    trail_.hold({owned_}, released);
    released.clear();
    if (owned_.use_count() > 1) trail_.wait_and_release();
    return;
  } catch (const DeviceFault&) {
    device_.keep_fault(std::current_exception());
  } catch (const std::exception& error) {
    log_release_failure(name_, error.what());
  }
  // A leaked handle is better than one freed while a kernel still uses it.
  if (any_capture() || device_.driver().cuCtxSynchronize() != CUDA_SUCCESS)
    static_cast<void>(new std::shared_ptr<Handle>(std::move(owned_)));
}

void TrackedObject::use_on(const Stream& stream) {
  const Stream user = stream ? stream : Stream::legacy(device_);
  if (any_capture()) {
    const std::shared_ptr<Capture> capture = find_capture(user);
    if (capture != nullptr) return capture->keep_alive(shared_from_this());
  }
  const ContextGuard guard(device_);
  const std::lock_guard lock(mutex_);
  trail_.note(user);
}

}  // namespace kernwright
