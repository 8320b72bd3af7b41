// Memory that several graphs share, and the order of their launches.
#pragma once

#include "core/event.h"
#include "core/stream.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace kernwright {

class Device;

/// Graphs of one pool use the same addresses for memory of their captures. Memory that was freed
/// when a capture begins is free for this capture, although earlier graphs write into it at each
/// launch. So the launches of these graphs run one after another, and what one of them left in
/// memory of its capture is valid until the next launch of any. Memory in use is never given to a
/// later capture. Thread-safe.
class GraphPool {
 public:
  explicit GraphPool(Device& device) : device_(device) {}
  GraphPool(const GraphPool&) = delete;
  GraphPool& operator=(const GraphPool&) = delete;

  Device& device() const noexcept { return device_; }

  /// The object of `key`, made by `make` when there is none yet: such as an arena of memory. It
  /// lives as long as the pool. `make` runs under a lock of this pool.
  std::shared_ptr<void> attachment(const void* key,
                                   const std::function<std::shared_ptr<void>()>& make);
  /// The next launch waits for `event`, which marks the last use of memory that a capture got.
  void launch_after(const Event& event);

  /// The capture lasts as long as the object that comes back. Marks the work of its stream, which
  /// may use memory that the capture frees. Throws CaptureError while another graph captures into
  /// the pool. For Graph alone, as is Launch; the device's context must be current.
  std::shared_ptr<void> begin_capture(const Stream& stream, std::uint64_t graph);

  /// The launch of a graph on a stream, after those of the other graphs. It locks the pool.
  class Launch {
   public:
    /// Makes `stream` wait for the last launch if that was on another one. Throws CaptureError when
    /// the stream of that launch is being captured and cannot be marked.
    Launch(GraphPool& pool, const Stream& stream, std::uint64_t graph);
    /// The driver took the launch.
    void queued();

   private:
    GraphPool& pool_;
    const Stream& stream_;
    const std::uint64_t graph_;
    std::lock_guard<std::mutex> lock_;
  };

 private:
  struct LastLaunch {
    std::uint64_t graph = 0;
    Stream stream;
    std::optional<Event> done;  ///< for a stream that others may destroy
  };
  Event last_end(std::uint64_t graph) const;

  Device& device_;
  std::mutex mutex_;
  std::vector<std::pair<const void*, std::shared_ptr<void>>> attachments_;
  std::vector<Event> marks_;     ///< the next launch waits for these
  std::uint64_t capturing_ = 0;  ///< the number of the graph; 0: none
  std::optional<LastLaunch> last_;
};

}  // namespace kernwright
