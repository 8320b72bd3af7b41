// The inside of a Graph; shared by its sources only.
#pragma once

#include "base/format.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "core/graph/graph.h"
#include "core/graph/graph_pieces.h"
#include "core/graph/graph_pool.h"
#include "core/graph/graph_shape.h"
#include "core/launch/launch_trail.h"
#include "core/lifecycle.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace kernwright {

inline std::uint64_t next_graph_id() noexcept {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

/// A kernel node of the executable: where it stands, and what it is.
struct KernelNode {
  std::size_t place = 0;  ///< in the graph's shape
  CUDA_KERNEL_NODE_PARAMS parameters{};
  std::optional<Kernel> kernel;
  std::string name;
};

/// A CUgraph until it is released to its owner.
class GraphHandle {
 public:
  GraphHandle(Device& device, CUgraph graph) : device_(device), graph_(graph) {}
  ~GraphHandle() {
    if (graph_ == nullptr) return;
    ReleaseGuard guard(device_);
    if (guard) guard.report(device_.driver().cuGraphDestroy(graph_), "cuGraphDestroy");
  }
  GraphHandle(const GraphHandle&) = delete;
  GraphHandle& operator=(const GraphHandle&) = delete;
  CUgraph get() const noexcept { return graph_; }
  CUgraph release() noexcept { return std::exchange(graph_, nullptr); }

 private:
  Device& device_;
  CUgraph graph_;
};

struct Graph::Box {
  Box(Device& d, std::shared_ptr<GraphPool> p)
      : device(d), id(next_graph_id()), pool(std::move(p)) {}
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;
  ~Box();

  std::string identify() const { return format("graph {} of {}", id, device.identify()); }
  void require_ready() const;
  void require_idle(const char* what) const;
  void destroy_handles() noexcept;
  KeptObjects everything_kept();
  void adopt(GraphHandle& recorded, CaptureHoldings recorded_holdings, KeptObjects& released);
  bool update_executable(CUgraph recorded);
  void instantiate(GraphHandle& recorded);
  std::vector<KernelNode> read_kernels(const GraphShape& recorded, const CaptureHoldings& from);
  KernelNode& find(const GraphNode& node);
  void queue(CUgraphExec part, const Stream& target, const LaunchSite& site);
  void queue_piece();
  void finish_run();
  void cut(std::size_t count);

  Device& device;
  const std::uint64_t id;
  const std::shared_ptr<GraphPool> pool;
  mutable std::mutex mutex;
  CUgraph graph = nullptr;  ///< what `executable` was made from
  CUgraphExec executable = nullptr;
  std::uint64_t structure = 0;  ///< counts instantiations
  GraphShape shape;
  std::vector<KernelNode> kernels;
  CUgraph latest = nullptr;  ///< what `executable` was updated by; null: nothing
  std::vector<CUgraphNode> latest_nodes;
  std::unique_ptr<GraphPieces> pieces;
  bool was_cut = false;
  /// A launch in pieces that is under way.
  struct {
    const Run* owner = nullptr;  ///< null: none is
    std::size_t next = 0;
    Stream stream;
    LaunchSite site;
  } run;
  std::vector<KeptObjects> arguments;                       ///< of each kernel that was updated
  std::vector<std::vector<std::vector<std::byte>>> values;  ///< of these arguments
  CaptureHoldings holdings;
  KernelTag tag;
  LaunchTrail trail;
  CaptureRegistration registration;
  Stream capturing;
};

}  // namespace kernwright
