// Stream capture: the captures under way, and the calls forbidden meanwhile.
//
// The rules are those of the CUDA Programming Guide ("Graphs", "Cross-stream Dependencies and
// Events", "Prohibited and Unhandled Operations", "Invalidation") and of the driver API's reference
// on stream management (cuStreamBeginCapture, cuStreamEndCapture,
// cuThreadExchangeStreamCaptureMode, cuStreamIsCapturing, cuStreamWaitEvent). A comment marks rules
// on which both are silent.
#pragma once

#include "sim/device/stream/work_queues.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace kernwright::sim {

struct Graph;

/// One capture sequence, from cuStreamBeginCapture to cuStreamEndCapture.
struct Capture {
  std::uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::uint64_t thread = 0;  ///< that began it
  std::shared_ptr<Context> context;
  std::shared_ptr<Stream> origin;
  std::vector<std::shared_ptr<Stream>> streams;  ///< all that take part, the origin first
  std::shared_ptr<Graph> graph;
  bool valid = true;
  bool over = false;
};

/// Thread-safe. Without a capture every function but begin() costs one load.
class Captures {
 public:
  void begin(const StreamUse& use, CUstreamCaptureMode mode);
  /// The finished graph. Throws Failure; the capture is over then too, unless another stream or
  /// thread began it.
  std::shared_ptr<Graph> end(const StreamUse& use);

  bool has(const StreamUse& use);
  /// Makes the work a node when the stream captures. Throws Failure when it must not be used.
  bool take(const StreamUse& use, Work& work);
  /// cuEventRecord and cuStreamWaitEvent; true if the capture took them, so that nothing else is to
  /// be done. Call with the event's mutex held.
  bool record(const StreamUse& use, Event& event);
  bool wait(const StreamUse& use, Event& event);

  // Each throws Failure when a capture forbids the call; this ends that capture's validity.
  /// Calls unseen by a capture: a replay would miss their effect.
  void forbid_unsafe();
  /// Waiting for, or asking about, work of the stream.
  void forbid_wait(const StreamUse& use);
  void forbid_context_wait(const Context& context);
  /// Waiting for, or asking about, an event. Call with the event's mutex held.
  void forbid_event(const Event& event);
  /// Stream calls without a kind of graph node.
  void forbid_in(const StreamUse& use);
  /// Calls with work on the default stream and a wait for it.
  void forbid_synchronous(const Context& context);

  struct Info {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    std::uint64_t id = 0;
    CUgraph graph = nullptr;
  };
  /// Throws Failure IMPLICIT for the default stream while a blocking stream captures.
  /// `dependencies` are the calling thread's until it asks again.
  Info info(const StreamUse& use, const CUgraphNode** dependencies, std::size_t* count);

  /// The stream or its context is going away.
  void leave(const Stream& stream);
  void leave(const Context& context);

 private:
  bool none() const noexcept { return count_.load(std::memory_order_acquire) == 0; }
  void refuse_legacy(const Context& context, CUresult code, bool invalidate);
  void refuse(Capture& capture, CUresult code);
  void require_valid(const Capture& capture);
  void join(const StreamUse& use, const std::shared_ptr<Capture>& capture);
  void close(Capture& capture);

  std::atomic<int> count_{0};
  std::mutex mutex_;  // guards the rest and the capture members of streams
  std::vector<std::shared_ptr<Capture>> running_;
};

/// The calling thread's mode of cuThreadExchangeStreamCaptureMode.
CUstreamCaptureMode& capture_mode() noexcept;

}  // namespace kernwright::sim
