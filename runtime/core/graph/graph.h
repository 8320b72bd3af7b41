// Work recorded once from a stream and launched many times: a CUDA graph.
#pragma once

#include "core/kernel.h"
#include "core/launch/launch_site.h"
#include "core/stream.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kernwright {

class Device;
class GraphPool;
class LaunchPieces;

/// A kernel of a graph. A value; it stays usable until the graph is captured anew with another
/// structure.
struct GraphNode {
  std::size_t index = 0;  ///< among the graph's kernels, in the order in which they were launched
  std::string name;       ///< of the kernel; empty when it is another library's without a name
  Dim3 grid, block;
  std::uint32_t shared_bytes = 0;  ///< dynamic shared memory
  std::optional<Kernel> kernel;    ///< none for a kernel of another library

  std::uint64_t graph = 0;      ///< which graph it belongs to
  std::uint64_t structure = 0;  ///< and which structure of it
};

/// Shared reference to a captured graph and its executable form. The graph keeps alive the objects
/// of its nodes (kernels and their modules, memory, arguments of update()) until the last launch is
/// done. Dropping the last reference waits for that. Thread-safe; a launch is asynchronous.
///
/// A capture records the work of one stream and of those that are joined to it by events, and runs
/// nothing. It is begun in CUDA's relaxed mode: kernels may be compiled and loaded meanwhile, other
/// threads work on. What cannot be recorded throws CaptureError and leaves the capture whole.
class Graph {
 public:
  explicit Graph(Device& device);
  /// Memory of the captures is that of `pool`: see graph_pool.h. Null is InvalidArgument.
  explicit Graph(std::shared_ptr<GraphPool> pool);

  Device& device() const noexcept;
  /// Null when the graph has its memory alone.
  const std::shared_ptr<GraphPool>& pool() const noexcept;

  /// From here on work queued on `stream` is recorded. Throws CaptureError for the legacy stream
  /// and for a stream, a graph or a pool that is capturing already, InvalidArgument for another
  /// device.
  void begin_capture(const Stream& stream);
  /// Ends the recording and makes it ready for launches. An executable of the same structure is
  /// updated in place, and nodes() stay valid; otherwise it is made anew. When this throws, the
  /// graph stays as before begin_capture(). CaptureError: streams were not joined again, or a call
  /// outside this library broke the capture.
  void end_capture();
  /// Ends the recording and drops it. Without a capture a no-op.
  void discard_capture() noexcept;
  bool is_capturing() const noexcept;

  /// begin_capture(), body(), end_capture(); what `body` throws discards the capture.
  template <typename Body>
  void capture(const Stream& stream, Body&& body) {
    begin_capture(stream);
    try {
      body();
    } catch (...) {
      discard_capture();
      throw;
    }
    end_capture();
  }

  /// Whether there is something to launch; an empty recording counts.
  bool is_ready() const noexcept;
  /// Nodes of all kinds; 0 before the first capture.
  std::size_t node_count() const;
  /// The kernels in the order in which they were launched.
  std::vector<GraphNode> nodes() const;

  /// Queues the whole graph. Empty stream: the legacy stream. Launches of one graph, or of graphs
  /// of one pool, never run at the same time, whatever their streams. Throws Error before a
  /// capture, CaptureError into one, and when the pool's last launch was on a stream that is being
  /// captured now.
  void launch(const Stream& stream = {}, const LaunchSite& site = {});

  /// A launch in about `most` pieces of consecutive nodes, that are queued one by one. They run as
  /// the whole graph does: the next launch, capture or update of the graph queues those that are
  /// left. Null where the graph cannot be cut: one node, nodes of memory, or memory of a pool that
  /// other graphs use, too. The object must end before its stream. Throws as launch() does.
  std::unique_ptr<LaunchPieces> cut(std::size_t most, const Stream& stream = {},
                                    const LaunchSite& site = {});
  /// Tells graphs apart in measurements.
  const void* key() const noexcept { return box_.get(); }

  /// From the next launch on the kernel gets these arguments: `arguments[i]` points to the bytes of
  /// parameter i, copied before return. `keep` is what they refer to, held until it is replaced and
  /// no launch uses it any more. Launches queued before are not changed. Throws ArgumentError for a
  /// wrong count, InvalidArgument for a node of another graph or structure.
  void update(const GraphNode& node, std::span<void* const> arguments,
              std::vector<std::shared_ptr<const void>> keep = {});

  /// Drops the recording. Objects that it kept alive are released when its launches are done.
  void reset();

 private:
  class Run;
  struct Box;
  std::shared_ptr<Box> box_;
};

}  // namespace kernwright
