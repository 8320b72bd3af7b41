// Driver functions of events, and waits of streams for them.
#include "sim/device/launch/launch.h"
#include "sim/device/sim_driver.h"

namespace kernwright::sim {

void Event::forget_capture() {
  const std::lock_guard lock(mutex);
  capture = nullptr;
  tips.clear();
}

namespace {

constexpr unsigned kFlags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;

std::shared_ptr<Event> find_event(CUevent handle) {
  auto event = sim_driver().events.find(handle);
  require(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
  return event;
}

}  // namespace

void calls::cuEventCreate(CUevent* handle, unsigned int flags) {
  auto context = current_context();
  require(handle != nullptr);
  require((flags & CU_EVENT_INTERPROCESS) == 0, CUDA_ERROR_NOT_SUPPORTED);
  require((flags & ~kFlags) == 0);
  auto event = std::make_shared<Event>();
  event->context = std::move(context);
  event->flags = flags;
  *handle = sim_driver().events.insert(std::move(event));
}

void calls::cuEventDestroy(CUevent handle) {
  const auto event = sim_driver().events.remove(handle);
  require(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
  event->forget_capture();
}

void record_event(CUevent handle, const StreamUse& use) {
  if (handle == nullptr) return;
  const auto event = find_event(handle);
  require(use.context->id == event->context->id, CUDA_ERROR_INVALID_HANDLE);
  {
    const std::lock_guard lock(event->mutex);
    if (sim_driver().captures.record(use, *event)) return;
  }
  auto mark = sim_driver().queues.issue(use, RecordWork{event});
  if (mark == nullptr) {
    mark = std::make_shared<Mark>();
    mark->reach();
  }
  const std::lock_guard lock(event->mutex);
  event->mark = std::move(mark);
}

namespace {

/// The mark of the last record; null when there was none, which counts as done. Throws Failure if a
/// capture forbids the question.
std::shared_ptr<Mark> make_mark(Event& event) {
  const std::lock_guard lock(event.mutex);
  sim_driver().captures.forbid_event(event);
  return event.mark;
}

}  // namespace

/// With the external flag the record is a node of a captured graph, done anew at each launch.
void calls::cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned int flags) {
  const auto event = find_event(handle);
  const StreamUse use = use_stream(stream);
  require(flags == CU_EVENT_RECORD_DEFAULT || flags == CU_EVENT_RECORD_EXTERNAL);
  if (flags == CU_EVENT_RECORD_EXTERNAL && sim_driver().captures.has(use)) {
    submit(use, RecordWork{event});
  } else {
    record_event(handle, use);
  }
}

void calls::cuEventRecord(CUevent handle, CUstream stream) {
  cuEventRecordWithFlags(handle, stream, CU_EVENT_RECORD_DEFAULT);
}

/// Uses the event's current record, not a later one.
void calls::cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int flags) {
  const StreamUse use = use_stream(handle);
  const auto event = find_event(event_handle);
  require(flags == CU_EVENT_WAIT_DEFAULT || flags == CU_EVENT_WAIT_EXTERNAL);
  if (flags == CU_EVENT_WAIT_EXTERNAL && sim_driver().captures.has(use)) {
    submit(use, WaitWork{event});
    return;
  }
  std::shared_ptr<Mark> mark;
  {
    const std::lock_guard lock(event->mutex);
    if (sim_driver().captures.wait(use, *event)) return;
    mark = event->mark;
  }
  if (mark == nullptr) return;  // never recorded: nothing to wait for
  sim_driver().queues.issue(use, WaitWork{event}, {std::move(mark)});
}

void calls::cuEventQuery(CUevent handle) {
  const auto event = find_event(handle);
  const auto mark = make_mark(*event);
  if (mark == nullptr) return;
  const bool over = sim_driver().queues.query(*mark);
  sim_driver().queues.surface(*event->context);
  require(over, CUDA_ERROR_NOT_READY);
  sim_driver().order.host_learns(mark->clock);
}

void calls::cuEventSynchronize(CUevent handle) {
  const auto event = find_event(handle);
  const auto mark = make_mark(*event);
  if (mark == nullptr) return;
  sim_driver().queues.finish(*mark);
  sim_driver().order.host_learns(mark->clock);
  sim_driver().queues.surface(*event->context);
}

void calls::cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  require(milliseconds != nullptr);
  std::int64_t times[2];
  const auto first = find_event(start), last = find_event(end);
  for (int i = 0; i < 2; ++i) {
    Event& event = i == 0 ? *first : *last;
    const std::lock_guard lock(event.mutex);
    require(event.capture == nullptr, CUDA_ERROR_CAPTURED_EVENT);
    const bool timed = (event.flags & CU_EVENT_DISABLE_TIMING) == 0;
    require(timed && event.mark != nullptr, CUDA_ERROR_INVALID_HANDLE);
    require(event.mark->done, CUDA_ERROR_NOT_READY);
    times[i] = event.mark->nanoseconds;
  }
  require(first->context->device.ordinal == last->context->device.ordinal,
          CUDA_ERROR_INVALID_HANDLE);
  *milliseconds = static_cast<float>(times[1] - times[0]) / 1e6f;
}

}  // namespace kernwright::sim
