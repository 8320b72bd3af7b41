// Events: recording, waiting, timing.
#include "core/event.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/graph/capture.h"

#include <atomic>

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

  void require_recorded_outside(const char* what) const {
    if (captured.load(std::memory_order_relaxed) == 0) return;
    throw CaptureError(
        format("{} of an event that was recorded into a graph's capture: it marks a place in the "
               "graph, not in time; record it outside, or with external=true",
               what),
        CUDA_ERROR_CAPTURED_EVENT);
  }

  Device& device;
  bool timing;
  CUevent handle = nullptr;
  std::atomic<std::uint64_t> captured{0};
  std::atomic<bool> by_graph{false};
};

Event::Event(Device& device, bool timing) : box_(std::make_shared<Box>(device, timing)) {
  const ContextGuard guard(device);
  const unsigned flags = timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  device.check(device.driver().cuEventCreate(&box_->handle, flags), "cuEventCreate");
}

CUevent Event::handle() const noexcept { return box_->handle; }

Device& Event::device() const { return box_->device; }

bool Event::timing() const noexcept { return box_->timing; }

std::uint64_t Event::capture() const noexcept {
  return box_->captured.load(std::memory_order_relaxed);
}

bool Event::captured_by_graph() const noexcept {
  return box_->by_graph.load(std::memory_order_relaxed);
}

void Event::record(const Stream& stream, bool external) {
  Device& device = box_->device;
  if (stream && &stream.device() != &device) {
    throw InvalidArgument(
        format("an event of {} cannot be recorded on {}", device.identify(), stream.identify()));
  }
  const ContextGuard guard(device);
  const DriverApi& api = device.driver();
  std::uint64_t id = 0;
  std::shared_ptr<Capture> capture;
  if (any_capture() || (stream.handle() != nullptr && !stream.is_owned())) {
    if (stream.handle() == nullptr) refuse_in_capture(device, nullptr, "an event");
    id = capture_id(device, stream.handle());
    capture = find_capture(id);
  }
  if (external && id != 0) {
    device.check(
        api.cuEventRecordWithFlags(box_->handle, stream.handle(), CU_EVENT_RECORD_EXTERNAL),
        "cuEventRecordWithFlags");
    if (capture != nullptr) capture->keep_alive(box_);
    id = 0;
  } else {
    device.check(api.cuEventRecord(box_->handle, stream.handle()), "cuEventRecord");
  }
  box_->captured.store(id, std::memory_order_relaxed);
  box_->by_graph.store(id != 0 && capture != nullptr, std::memory_order_relaxed);
}

void Event::synchronize() const {
  box_->require_recorded_outside("synchronize()");
  const ContextGuard guard(box_->device);
  box_->device.check(box_->device.driver().cuEventSynchronize(box_->handle), "cuEventSynchronize");
}

bool Event::done() const {
  box_->require_recorded_outside("done");
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
  box_->require_recorded_outside("the time");
  start.box_->require_recorded_outside("the time");
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
