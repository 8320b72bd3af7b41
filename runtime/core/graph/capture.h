// Captures in progress: the recording streams, and the objects of the graph.
#pragma once

#include "base/errors.h"
#include "core/kernel.h"
#include "core/partition.h"
#include "core/stream.h"
#include "driver/driver_api.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace kernwright {

class Device;
class GraphPool;

/// A stream records a graph, and a call was asked for that cannot be part of it. It was refused
/// before the driver saw it, and the capture goes on. Also: a capture that could not begin or end.
/// `code` is the driver's answer to such a call (CUDA_ERROR_STREAM_CAPTURE_...).
class CaptureError : public DriverError {
 public:
  CaptureError(const std::string& message, CUresult code);
};

/// Objects used and kept alive by a captured graph. They are dropped with the graph, after its last
/// launch is done.
struct CaptureHoldings {
  std::vector<std::shared_ptr<const void>> objects;
  std::vector<Kernel> kernels;                                             ///< each once
  std::vector<std::pair<const void*, std::shared_ptr<void>>> attachments;  ///< by key
  std::vector<Partition> partitions;  ///< of the streams, each once; an empty one: the device

  /// Whether some of the work runs in a partition.
  bool is_partitioned() const noexcept;
  /// Whether all work of both runs on the same multiprocessors. An executable's nodes keep their
  /// context in an update, and which of several contexts a node has is not known.
  bool runs_where(const CaptureHoldings& other) const noexcept;
};

/// One capture in progress. Made by Graph, found by find_capture(). Thread-safe.
class Capture {
 public:
  Capture(Stream origin, std::uint64_t id, std::shared_ptr<GraphPool> pool = nullptr);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// The driver's number of the capture, never used twice in a process.
  std::uint64_t id() const noexcept { return id_; }
  const Stream& origin() const noexcept { return origin_; }
  Device& device() const { return origin_.device(); }
  std::thread::id thread() const noexcept { return thread_; }  ///< that began it
  /// Whose memory the graph shares with others; null when it has its own.
  const std::shared_ptr<GraphPool>& pool() const noexcept { return pool_; }

  /// The graph holds `object` until its last launch is done.
  void keep_alive(std::shared_ptr<const void> object);
  void keep_kernel(const Kernel& kernel);
  /// A stream of the partition, or of the whole device, is part of the capture.
  void note_partition(const Partition& partition);
  /// The object of `key` in this graph, made by `make` when there is none yet: such as the arena
  /// for memory allocated in this capture. `make` runs under a lock of this capture only.
  std::shared_ptr<void> attachment(const void* key,
                                   const std::function<std::shared_ptr<void>()>& make);
  /// The same where it is there already; else null.
  std::shared_ptr<void> find_attachment(const void* key);
  /// Runs `action` when the capture has ended, well or not. For actions that must wait for this,
  /// such as giving memory back after use by a captured stream. It must not throw.
  void at_end(std::function<void()> action);

  /// The collected objects; the capture has none any more.
  CaptureHoldings take();

 private:
  friend class CaptureRegistration;
  const Stream origin_;
  const std::uint64_t id_;
  const std::thread::id thread_ = std::this_thread::get_id();
  const std::shared_ptr<GraphPool> pool_;
  std::mutex mutex_;
  CaptureHoldings holdings_;
  std::vector<std::function<void()>> at_end_;
};

/// Makes a capture known while it lives; then runs what was left for its end. `claim` goes then.
class CaptureRegistration {
 public:
  CaptureRegistration() = default;
  explicit CaptureRegistration(std::shared_ptr<Capture> capture,
                               std::shared_ptr<void> claim = nullptr);
  ~CaptureRegistration() { end(); }
  CaptureRegistration(CaptureRegistration&& other) noexcept;
  CaptureRegistration& operator=(CaptureRegistration&& other) noexcept;

  const std::shared_ptr<Capture>& capture() const noexcept { return capture_; }
  void end() noexcept;

 private:
  std::shared_ptr<Capture> capture_;
  std::shared_ptr<void> claim_;
};

namespace detail {
extern std::atomic<int> captures_in_progress;
}  // namespace detail

/// Whether a Graph captures anything at this moment, in any thread. Costs one load.
inline bool any_capture() noexcept {
  return detail::captures_in_progress.load(std::memory_order_relaxed) != 0;
}

/// The capture that records the work of `stream`, also when it was joined by an event; null when
/// there is none, or it is another library's. Never throws but for a lost or forbidden device.
std::shared_ptr<Capture> find_capture(const Stream& stream);
/// The same for a handle, with the device's context current already.
std::shared_ptr<Capture> find_capture(const Device& device, CUstream stream);
/// The capture of that number, null when it has ended or is another library's.
std::shared_ptr<Capture> find_capture(std::uint64_t id);
/// A capture in progress on `device`, in any thread; null when there is none.
std::shared_ptr<Capture> capture_on(const Device& device);

/// The driver's number of the capture, ours or another library's, that records the work of
/// `stream`; 0 when it records nothing. The device's context must be current.
std::uint64_t capture_id(const Device& device, CUstream stream) noexcept;

/// While it lives no stream begins to record into a graph of ours. For a check of a stream,
/// followed by a question or a mark: these would break a capture begun in between. For short calls
/// of the driver only: not around waits of the host, and not around Stream::wait().
class CaptureHold {
 public:
  CaptureHold();
  ~CaptureHold();
  CaptureHold(const CaptureHold&) = delete;
  CaptureHold& operator=(const CaptureHold&) = delete;
};

/// Held around the driver's call by which a stream begins to record.
class CaptureStart {
 public:
  CaptureStart();
  ~CaptureStart();
  CaptureStart(const CaptureStart&) = delete;
  CaptureStart& operator=(const CaptureStart&) = delete;
};

/// Throws CaptureError when `stream` records into a graph, ours or another library's: `what` names
/// the call ("synchronize()"), `advice` the remedy. The device's context must be current.
void refuse_in_capture(const Device& device, CUstream stream, const char* what,
                       const char* advice = "do it before or after the capture");
/// Throws CaptureError while any stream of `device` is captured by a Graph: for waits that include
/// the stream.
void refuse_during_capture(const Device& device, const char* what,
                           const char* advice = "do it before or after the capture");

/// The same for streams whose capture this thread began: for calls that run at once, although
/// earlier recorded ones do not.
void refuse_in_capturing_thread(const Device& device, const char* what,
                                const char* advice = "do it before or after the capture");

/// Whether this thread may queue work only on streams that record into a graph of ours: else that
/// work runs once, at the capture, and no launch of the graph repeats it. Returns what held before.
bool exchange_captured_only(bool only) noexcept;
/// Throws CaptureError when exchange_captured_only(true) holds and the work of `stream` is not
/// recorded. The device's context must be current.
void require_captured(const Device& device, const Stream& stream, const char* what);

/// Lets this thread make calls that CUDA calls "potentially unsafe" during a capture (loading code,
/// plain allocation) without harm to a capture of another library in this thread. Captures of ours
/// need it not. Never throws.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Device& device) noexcept;
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const DriverApi& api_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool changed_ = false;
};

}  // namespace kernwright
