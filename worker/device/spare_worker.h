// A second process that opens its device while the first one works.
#pragma once

#include "worker/device/device_facts.h"
#include "worker/worker.h"

#include <atomic>
#include <future>
#include <memory>
#include <optional>

namespace kernwright {

/// A worker whose device is open.
struct OpenWorker {
  Worker worker;
  DeviceFacts facts;
};

/// Opens the device of `worker`, sharing the memory of descriptor `shared`. Throws as
/// Worker::run().
DeviceFacts open_device(Worker& worker, int shared, const WaitLimits& limits);

/// Does that with a worker of its own, on a thread of its own. `shared` must stay open. Not
/// thread-safe.
class SpareWorker {
 public:
  SpareWorker(WorkerOptions options, int shared);
  /// Ends the process. In a forked child, which has no such thread, it leaves all as it is.
  ~SpareWorker();
  SpareWorker(const SpareWorker&) = delete;
  SpareWorker& operator=(const SpareWorker&) = delete;

  /// The worker, once; waits until it is ready. Nothing when that failed: then the next attempt
  /// tells why. Throws Timeout, Cancelled or Interrupted as `limits` say.
  std::optional<OpenWorker> take(const WaitLimits& limits);
  bool is_taken() const noexcept { return !ready_->valid(); }

 private:
  StopFlag stop_ = std::make_shared<std::atomic<bool>>(false);
  pid_t owner_;
  std::unique_ptr<std::future<OpenWorker>> ready_;
};

}  // namespace kernwright
