// Driver functions of events: a record is a time stamp, because earlier work has run by then.
#include "sim/device/platform.h"

#include <chrono>

namespace kernwright::sim {
namespace {

constexpr unsigned kFlags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;

std::shared_ptr<Event> find_event(CUevent handle) {
  auto event = platform().events.find(handle);
  require(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
  return event;
}

CUresult event_create(CUevent* handle, unsigned int flags) {
  return guarded([&] {
    auto context = current_context();
    require(handle != nullptr);
    require((flags & CU_EVENT_INTERPROCESS) == 0, CUDA_ERROR_NOT_SUPPORTED);
    require((flags & ~kFlags) == 0);
    auto event = std::make_shared<Event>();
    event->context = std::move(context);
    event->flags = flags;
    *handle = platform().events.insert(std::move(event));
  });
}

CUresult event_destroy(CUevent handle) {
  return guarded(
      [&] { require(platform().events.remove(handle) != nullptr, CUDA_ERROR_INVALID_HANDLE); });
}

CUresult event_record(CUevent handle, CUstream stream) {
  return guarded([&] {
    const auto event = find_event(handle);
    require(context_of(stream)->id == event->context->id, CUDA_ERROR_INVALID_HANDLE);
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    event->nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  });
}

/// An event that was never recorded counts as done.
CUresult event_query(CUevent handle) {
  return guarded([&] { find_event(handle); });
}

CUresult event_synchronize(CUevent handle) {
  return guarded([&] { find_event(handle); });
}

CUresult event_elapsed_time(float* milliseconds, CUevent start, CUevent end) {
  return guarded([&] {
    require(milliseconds != nullptr);
    const auto first = find_event(start), last = find_event(end);
    for (const auto& event : {first, last}) {
      const bool timed = (event->flags & CU_EVENT_DISABLE_TIMING) == 0;
      require(timed && event->nanoseconds != 0, CUDA_ERROR_INVALID_HANDLE);
    }
    require(first->context->device.ordinal == last->context->device.ordinal,
            CUDA_ERROR_INVALID_HANDLE);
    *milliseconds = static_cast<float>(last->nanoseconds - first->nanoseconds) / 1e6f;
  });
}

}  // namespace

void install_event(DriverApi& api) {
  api.cuEventCreate = event_create;
  api.cuEventDestroy = event_destroy;
  api.cuEventRecord = event_record;
  api.cuEventQuery = event_query;
  api.cuEventSynchronize = event_synchronize;
  api.cuEventElapsedTime = event_elapsed_time;
}

}  // namespace kernwright::sim
