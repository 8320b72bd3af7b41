// Recording activities: events around queued work, one clock for host and devices.
#include "core/activity.h"

#include "base/errors.h"
#include "core/device.h"
#include "core/graph/capture.h"

#include <chrono>
#include <map>
#include <utility>

namespace kernwright {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t thread_number() noexcept {
  static std::atomic<std::uint64_t> next{1};
  thread_local const std::uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

/// The recording in progress. Leaked on purpose, as launches may happen at any time.
struct Current {
  std::mutex mutex;
  std::weak_ptr<ActivityRecording> recording;
};

Current& current() {
  static auto* const instance = new Current;
  return *instance;
}

std::shared_ptr<ActivityRecording> current_recording() {
  Current& all = current();
  const std::lock_guard lock(all.mutex);
  return detail::is_recording.load() ? all.recording.lock() : nullptr;
}

}  // namespace

namespace detail {
std::atomic<bool> is_recording{false};
}  // namespace detail

struct ActivityRecording::Timed {
  Activity activity;
  std::optional<Event> begin, end;
};

struct ActivityRecording::State {
  /// A moment that host and device agree on.
  struct Origin {
    Event event;
    double host_ms;
  };
  std::mutex mutex;
  Clock::time_point start = Clock::now();
  std::map<Device*, Origin> origins;
  std::vector<Timed> list;
};

ActivityRecording::ActivityRecording() : state_(std::make_unique<State>()) {}

/// A recording that is dropped without its end stops, too.
ActivityRecording::~ActivityRecording() { stop(); }

void ActivityRecording::stop() noexcept {
  const std::lock_guard lock(current().mutex);
  if (std::exchange(is_running_, false)) detail::is_recording.store(false);
}

std::shared_ptr<ActivityRecording> ActivityRecording::begin() {
  Current& all = current();
  const std::lock_guard lock(all.mutex);
  if (detail::is_recording.load()) {
    throw Error("activities are being recorded already: end that profile first");
  }
  auto made = std::shared_ptr<ActivityRecording>(new ActivityRecording);
  all.recording = made;
  detail::is_recording.store(true);
  return made;
}

double ActivityRecording::now_ms() const noexcept {
  return std::chrono::duration<double, std::milli>(Clock::now() - state_->start).count();
}

/// Recorded on the legacy stream. It is idle then, because the host waits for it.
Event& ActivityRecording::find_origin(Device& device) {
  {
    const std::lock_guard lock(state_->mutex);
    if (const auto found = state_->origins.find(&device); found != state_->origins.end()) {
      return found->second.event;
    }
  }
  Event event(device);
  event.record(Stream::legacy(device));
  event.synchronize();
  const double host_ms = now_ms();
  const std::lock_guard lock(state_->mutex);
  return state_->origins.emplace(&device, State::Origin{event, host_ms}).first->second.event;
}

void ActivityRecording::add(Timed timed) {
  const std::lock_guard lock(state_->mutex);
  state_->list.push_back(std::move(timed));
}

std::vector<Activity> ActivityRecording::end() {
  stop();
  std::vector<Timed> list;
  {
    const std::lock_guard lock(state_->mutex);
    list.swap(state_->list);
  }
  std::vector<Activity> activities;
  for (Timed& timed : list) {
    Activity& activity = timed.activity;
    activity.begin_ms = activity.host_begin_ms;
    activity.device_ms = -1;
    if (timed.begin && timed.end) {
      timed.end->synchronize();
      const State::Origin& origin = state_->origins.at(activity.device);
      activity.begin_ms =
          origin.host_ms + static_cast<double>(timed.begin->elapsed_ms(origin.event));
      activity.device_ms = static_cast<double>(timed.end->elapsed_ms(*timed.begin));
    }
    activities.push_back(std::move(activity));
  }
  return activities;
}

ActivityScope::ActivityScope(Activity activity, CUstream stream, bool is_queued)
    : recording_(current_recording()), activity_(std::move(activity)) {
  if (recording_ == nullptr) return;
  activity_.stream = reinterpret_cast<std::uintptr_t>(stream);
  activity_.thread = thread_number();
  // Work of a captured stream does not run now.
  if (is_queued && capture_id(*activity_.device, stream) == 0) {
    Device& device = *activity_.device;
    recording_->find_origin(device);
    stream_ = Stream::borrow(device, stream);
    begin_.emplace(device).record(stream_);
  }
  activity_.host_begin_ms = recording_->now_ms();
}

void ActivityScope::finish() {
  if (recording_ == nullptr) return;
  activity_.host_ms = recording_->now_ms() - activity_.host_begin_ms;
  ActivityRecording::Timed timed{std::move(activity_), std::move(begin_), std::nullopt};
  if (timed.begin) timed.end.emplace(stream_.device()).record(stream_);
  recording_->add(std::move(timed));
  recording_ = nullptr;
}

void record_activity(Activity activity) noexcept {
  try {
    ActivityScope scope(std::move(activity), nullptr, false);
    scope.finish();
  } catch (const std::bad_alloc&) {
    return;  // a profile with a gap is better than a failed release
  }
}

}  // namespace kernwright
