// Streams: creation, ordering against events, waiting.
#include "core/stream.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/event.h"
#include "core/graph/capture.h"
#include "core/lifecycle.h"
#include "core/partition.h"
#include "core/stream_attachments.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace kernwright {
namespace {

using std::chrono::steady_clock;

/// The legacy stream is the same one however often it is asked for, so its id is fixed per device;
/// created and borrowed streams count on from here.
constexpr std::uint64_t kFirstFreeId = 1 << 16;

std::uint64_t legacy_id(const Device& device) noexcept {
  return 1 + 2 * static_cast<std::uint64_t>(device.ordinal()) + (device.is_simulated() ? 1 : 0);
}

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> next{kFirstFreeId};
  return next.fetch_add(1, std::memory_order_relaxed);
}

/// Our own streams by handle: what borrows one of them by its handle keeps it. Thread-safe.
class OwnedStreams {
 public:
  using Attachments = std::vector<std::pair<const void*, std::shared_ptr<void>>>;

  static OwnedStreams& instance() {
    static auto& streams = *new OwnedStreams;  // outlives every stream
    return streams;
  }
  void add(const Device& device, CUstream handle, const std::shared_ptr<void>& box) {
    const std::lock_guard lock(mutex_);
    streams_[{&device, handle}] = {box, {}};
  }
  /// Returns what belonged to the stream.
  Attachments remove(const Device& device, CUstream handle) {
    const std::lock_guard lock(mutex_);
    auto node = streams_.extract({&device, handle});
    return node.empty() ? Attachments() : std::move(node.mapped().attachments);
  }
  /// Null for a borrowed stream.
  std::shared_ptr<void> find(const Device& device, CUstream handle) {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find({&device, handle});
    return found == streams_.end() ? nullptr : found->second.box.lock();
  }
  /// The attachment of `key`; if there is none, `made` becomes it unless null.
  std::shared_ptr<void> attachment(const Device& device, CUstream handle, const void* key,
                                   const std::shared_ptr<void>& made) {
    const std::lock_guard lock(mutex_);
    Attachments& all = streams_.at({&device, handle}).attachments;
    for (const auto& [known, object] : all) {
      if (known == key) return object;
    }
    if (made != nullptr) all.emplace_back(key, made);
    return made;
  }

 private:
  struct Entry {
    std::weak_ptr<void> box;
    Attachments attachments;
  };
  std::mutex mutex_;
  std::map<std::pair<const Device*, CUstream>, Entry> streams_;
};

}  // namespace

struct Stream::Box {
  Box(Device& d, std::uint64_t i) : device(d), id(i) {}
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;
  ~Box() {
    if (!owned) return;
    ReleaseGuard guard(device);
    OwnedStreams::instance().remove(device, handle);  // before the handle can be given again
    if (guard && partition) partition.close_stream(handle);
    if (guard) guard.report(device.driver().cuStreamDestroy(handle), "cuStreamDestroy");
  }
  std::string identify() const { return format("stream {} of {}", id, device.identify()); }

  Device& device;
  std::uint64_t id;
  CUstream handle = nullptr;
  bool owned = false;
  Partition partition;  ///< empty: of the whole device
  std::shared_ptr<void> keep_alive;
};

PriorityRange priority_range(Device& device) {
  const ContextGuard guard(device);
  PriorityRange range;
  device.check(device.driver().cuCtxGetStreamPriorityRange(&range.least, &range.greatest),
               "cuCtxGetStreamPriorityRange");
  return range;
}

int priority_of(Device& device, StreamPriority name) {
  const PriorityRange range = priority_range(device);
  switch (name) {
    case StreamPriority::high:
      return range.greatest;
    case StreamPriority::medium:
      return (range.greatest + range.least) / 2;
    case StreamPriority::low:
      break;
  }
  return range.least;
}

namespace {

void require_priority(Device& device, int priority) {
  if (priority == 0) return;  // the default, which every device takes
  const PriorityRange range = priority_range(device);
  if (priority >= range.greatest && priority <= range.least) return;
  throw InvalidArgument(
      format("a stream of priority {} on {}: between {} (the highest) and {} (the lowest), or by "
             "name: high, medium, low",
             priority, device.identify(), range.greatest, range.least));
}

}  // namespace

Stream Stream::create(Device& device, int priority) {
  const ContextGuard guard(device);
  require_priority(device, priority);
  auto box = std::make_shared<Box>(device, next_id());
  device.check(
      device.driver().cuStreamCreateWithPriority(&box->handle, CU_STREAM_NON_BLOCKING, priority),
      "cuStreamCreateWithPriority");
  box->owned = true;
  OwnedStreams::instance().add(device, box->handle, box);
  return Stream(std::move(box));
}

Stream Stream::create(const Partition& partition, int priority) {
  Device& device = partition.device();
  const ContextGuard guard(device);
  require_priority(device, priority);
  auto box = std::make_shared<Box>(device, next_id());
  box->handle = partition.open_stream(priority);
  box->partition = partition;
  box->owned = true;
  OwnedStreams::instance().add(device, box->handle, box);
  return Stream(std::move(box));
}

Stream Stream::legacy(Device& device) {
  return Stream(std::make_shared<Box>(device, legacy_id(device)));
}

Stream Stream::per_thread(Device& device) { return borrow(device, kStreamPerThread); }

Stream Stream::borrow(Device& device, CUstream handle, std::shared_ptr<void> keep_alive) {
  const bool is_legacy = handle == nullptr || handle == kStreamLegacy;
  auto box = std::make_shared<Box>(device, is_legacy ? legacy_id(device) : next_id());
  box->handle = is_legacy ? nullptr : handle;
  if (keep_alive == nullptr && !is_legacy) {
    keep_alive = OwnedStreams::instance().find(device, handle);
    if (keep_alive != nullptr) box->partition = static_cast<Box*>(keep_alive.get())->partition;
  }
  box->keep_alive = std::move(keep_alive);
  return Stream(std::move(box));
}

const Stream::Box& Stream::box() const {
  if (box_ == nullptr) {
    throw InvalidArgument(
        "an empty stream has no device: make one with Stream::create(device) or "
        "Stream::legacy(device)");
  }
  return *box_;
}

CUstream Stream::handle() const noexcept { return box_ == nullptr ? nullptr : box_->handle; }

Device& Stream::device() const { return box().device; }

std::uint64_t Stream::id() const noexcept { return box_ == nullptr ? 0 : box_->id; }

bool Stream::is_owned() const noexcept { return box_ != nullptr && box_->owned; }

std::string Stream::identify() const { return box().identify(); }

int Stream::priority() const {
  const Box& self = box();
  const ContextGuard guard(self.device);
  int value = 0;
  const CUresult result = self.device.driver().cuStreamGetPriority(self.handle, &value);
  if (result != CUDA_SUCCESS) self.device.fail(result, "cuStreamGetPriority", self.identify());
  return value;
}

Partition Stream::partition() const { return box().partition; }

int Stream::multiprocessors() const {
  const Box& self = box();
  return self.partition ? self.partition.multiprocessors()
                        : self.device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

int multiprocessors_of(const Stream& stream, const Device& device) {
  return stream ? stream.multiprocessors()
                : device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

Event Stream::record() const {
  Event event(device());
  event.record(*this);
  return event;
}

void Stream::record(Event& event) const { event.record(*this); }

void Stream::join_capture(const Event& event) const {
  const Device& device = box_->device;
  const std::uint64_t current = capture_id(device, box_->handle);
  if (current == event.capture()) return;
  if (current != 0) {
    throw CaptureError(
        format("{} is being captured and cannot wait for an event that was recorded outside its "
               "capture: wait for it before the capture",
               identify()),
        CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  const std::shared_ptr<Capture> joined = find_capture(event.capture());
  if (joined == nullptr) {
    if (!event.captured_by_graph()) return;  // another library's capture: the driver knows
    throw CaptureError(format("{} cannot wait for an event of a capture that has ended: record the "
                              "event again, or launch the graph and wait for that",
                              identify()),
                       CUDA_ERROR_CAPTURED_EVENT);
  }
  if (handle() == nullptr) {
    throw CaptureError(format("the legacy default stream of {} cannot join a capture: use a stream "
                              "of your own",
                              device.identify()),
                       CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  joined->note_partition(box_->partition);
  joined->keep_alive(box_);  // a stream that is part of a capture must not be destroyed
}

void Stream::wait(const Event& event) const {
  const Box& self = box();
  event.device().require_usable();  // else its handle may not exist any more
  const ContextGuard guard(self.device);
  if (any_capture() || event.capture() != 0 || (handle() != nullptr && !is_owned())) {
    join_capture(event);
  }
  std::optional<CaptureStart> starting;  // the stream records from now on when the event's does
  if (event.capture() != 0) starting.emplace();
  const CUresult result =
      self.device.driver().cuStreamWaitEvent(self.handle, event.handle(), CU_EVENT_WAIT_DEFAULT);
  starting.reset();
  if (result != CUDA_SUCCESS) self.device.fail(result, "cuStreamWaitEvent", self.identify());
}

void Stream::synchronize(std::optional<std::chrono::nanoseconds> timeout) const {
  const Box& self = box();
  if (!timeout) {
    const ContextGuard guard(self.device);
    refuse_in_capture(self.device, self.handle, "synchronize()");
    const CUresult result = self.device.driver().cuStreamSynchronize(self.handle);
    if (result != CUDA_SUCCESS) self.device.fail(result, "cuStreamSynchronize", self.identify());
    self.device.raise_kept_fault();
    return;
  }
  constexpr std::chrono::microseconds kLongestPause{1000};
  const auto deadline = steady_clock::now() + *timeout;
  std::chrono::microseconds pause{1};
  while (!done()) {
    const auto now = steady_clock::now();
    if (now >= deadline) {
      const std::string launches = self.device.launches().describe();
      throw Timeout(format("{} is not done after {} s{}{}", self.identify(),
                           std::chrono::duration<double>(*timeout).count(),
                           launches.empty() ? "" : "; last launches on the device: ", launches));
    }
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(deadline - now);
    std::this_thread::sleep_for(std::min(pause, left));
    pause = std::min(2 * pause, kLongestPause);
  }
  self.device.raise_kept_fault();
}

bool Stream::done() const {
  const Box& self = box();
  const ContextGuard guard(self.device);
  refuse_in_capture(self.device, self.handle, "done");
  const CUresult result = self.device.driver().cuStreamQuery(self.handle);
  if (result == CUDA_ERROR_NOT_READY) return false;
  if (result != CUDA_SUCCESS) self.device.fail(result, "cuStreamQuery", self.identify());
  return true;
}

std::shared_ptr<void> stream_attachment(const Stream& stream, const void* key,
                                        const std::function<std::shared_ptr<void>()>& make) {
  if (!stream.is_owned()) {
    throw InvalidArgument("only a stream that Stream::create() made has objects of its own");
  }
  OwnedStreams& streams = OwnedStreams::instance();
  const auto find = [&](const std::shared_ptr<void>& made) {
    return streams.attachment(stream.device(), stream.handle(), key, made);
  };
  if (auto known = find(nullptr)) return known;
  return find(make());
}

}  // namespace kernwright
