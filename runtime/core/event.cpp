// Events: recording, waiting, timing.
#include "core/event.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"

namespace kernwright {

struct Event::Box {
  Box(Device& d, bool t) : device(d), timing(t) {}
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;
  ~Box() {
    if (handle == nullptr) return;
    ReleaseGuard guard(device);
    if (guard) guard.report(device.driver().cuEventDestroy(handle), "cuEventDestroy");
  }

  Device& device;
  bool timing;
  CUevent handle = nullptr;
};

Event::Event(Device& device, bool timing) : box_(std::make_shared<Box>(device, timing)) {
  const ContextGuard guard(device);
  const unsigned flags = timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  device.check(device.driver().cuEventCreate(&box_->handle, flags), "cuEventCreate");
}

CUevent Event::handle() const noexcept { return box_->handle; }

Device& Event::device() const { return box_->device; }

bool Event::timing() const noexcept { return box_->timing; }

void Event::record(const Stream& stream) {
  Device& device = box_->device;
  if (stream && &stream.device() != &device) {
    throw InvalidArgument(
        format("an event of {} cannot be recorded on {}", device.identify(), stream.identify()));
  }
  const ContextGuard guard(device);
  device.check(device.driver().cuEventRecord(box_->handle, stream.handle()), "cuEventRecord");
}

void Event::synchronize() const {
  const ContextGuard guard(box_->device);
  box_->device.check(box_->device.driver().cuEventSynchronize(box_->handle), "cuEventSynchronize");
}

bool Event::done() const {
  const ContextGuard guard(box_->device);
  const CUresult result = box_->device.driver().cuEventQuery(box_->handle);
  if (result == CUDA_ERROR_NOT_READY) return false;
  box_->device.check(result, "cuEventQuery");
  return true;
}

float Event::elapsed_ms(const Event& start) const {
  Device& device = box_->device;
  if (&start.device() != &device) {
    throw InvalidArgument(format("elapsed time between events of two devices: {} and {}",
                                 start.device().identify(), device.identify()));
  }
  if (!timing() || !start.timing()) {
    throw InvalidArgument("elapsed time needs two events made with timing");
  }
  const ContextGuard guard(device);
  float milliseconds = 0;
  const CUresult result =
      device.driver().cuEventElapsedTime(&milliseconds, start.handle(), handle());
  if (result == CUDA_ERROR_NOT_READY) {
    device.fail(result, "cuEventElapsedTime", "an event is not done: synchronise it first");
  }
  if (result == CUDA_ERROR_INVALID_HANDLE) {
    device.fail(result, "cuEventElapsedTime", "an event was never recorded");
  }
  device.check(result, "cuEventElapsedTime");
  return milliseconds;
}

}  // namespace kernwright
