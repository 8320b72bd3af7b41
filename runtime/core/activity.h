// The records of a profile: each launch, copy and allocation, with its times on host and device.
#pragma once

#include "core/event.h"
#include "core/launch/launch_config.h"
#include "core/launch/launch_site.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

class Device;

/// One thing that was asked of a device.
struct Activity {
  enum class Kind : std::uint8_t {
    kernel,
    graph,
    copy,
    fill,
    allocation,
    release,
    annotation,
  };
  Kind kind = Kind::kernel;
  std::string name;          ///< of the kernel or the graph, "host to device", ...
  Device* device = nullptr;  ///< null for an annotation
  std::uint64_t stream = 0;  ///< handle of the stream
  Dim3 grid{0, 0, 0}, block{0, 0, 0};
  std::uint64_t bytes = 0;    ///< moved, filled, allocated; dynamic shared memory of a kernel
  std::uint64_t address = 0;  ///< of an allocation
  std::uint64_t thread = 0;   ///< of the host, counted from 1
  LaunchSite site;
  double host_begin_ms = 0;  ///< since the recording began
  double host_ms = 0;        ///< that the call took
  double begin_ms = 0;       ///< on the device, since the recording began
  double device_ms = 0;      ///< negative: not measured, as for what a capture recorded
};

/// Collects activities of the whole process, from one thread or several. One at a time.
class ActivityRecording {
 public:
  /// Throws Error when there is one already.
  static std::shared_ptr<ActivityRecording> begin();
  ~ActivityRecording();
  ActivityRecording(const ActivityRecording&) = delete;
  ActivityRecording& operator=(const ActivityRecording&) = delete;

  /// Ends the recording, waits for the timed work, and returns everything in the order of the
  /// calls. Throws errors reported by the devices.
  std::vector<Activity> end();

 private:
  friend class ActivityScope;
  ActivityRecording();
  struct Timed;
  double now_ms() const noexcept;
  Event& find_origin(Device& device);
  void add(Timed timed);
  void stop() noexcept;

  struct State;
  std::unique_ptr<State> state_;
  bool is_running_ = true;  ///< guarded by the lock of the recording in progress
};

namespace detail {
extern std::atomic<bool> is_recording;
}  // namespace detail

/// Whether activities are recorded at this moment. Costs one load.
inline bool is_recording_activity() noexcept {
  return detail::is_recording.load(std::memory_order_relaxed);
}

/// Surrounds a call that queues work on a stream, or one of the host alone. Records nothing unless
/// finish() is reached. The device's context must be current.
class ActivityScope {
 public:
  /// With `is_queued` the work's time on the device is measured by events around it.
  ActivityScope(Activity activity, CUstream stream, bool is_queued);
  void finish();
  Activity& activity() noexcept { return activity_; }

 private:
  std::shared_ptr<ActivityRecording> recording_;
  Activity activity_;
  Stream stream_;
  std::optional<Event> begin_;
};

/// Records one call of the host: an allocation, a release. Call it while is_recording_activity().
void record_activity(Activity activity) noexcept;

}  // namespace kernwright
