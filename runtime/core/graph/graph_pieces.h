// A graph cut at the borders of its nodes: executables of runs of nodes, in their order.
#pragma once

#include "driver/driver_api.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace kernwright {

class Device;

/// Launched one after the other on a stream, the pieces do what the whole graph does. Not
/// thread-safe; the device's context must be current.
class GraphPieces {
 public:
  /// `nodes` of `graph` in an order that respects its edges, as `count` runs of about equal length,
  /// at most one for each node. Null where the driver cannot clone the graph (nodes of memory).
  /// Throws DriverError.
  static std::unique_ptr<GraphPieces> make(Device& device, CUgraph graph,
                                           const std::vector<CUgraphNode>& nodes,
                                           std::size_t count);
  ~GraphPieces();
  GraphPieces(const GraphPieces&) = delete;
  GraphPieces& operator=(const GraphPieces&) = delete;

  std::size_t size() const noexcept { return pieces_.size(); }
  CUgraphExec executable(std::size_t piece) const { return pieces_.at(piece).executable; }
  /// Sets the arguments of the kernel at `place` in `nodes`.
  void set(std::size_t place, const CUDA_KERNEL_NODE_PARAMS& parameters);

 private:
  struct Piece {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    std::size_t end = 0;  ///< place behind its last node
  };
  explicit GraphPieces(Device& device) : device_(device) {}
  void add(CUgraph graph, const std::vector<CUgraphNode>& nodes, std::size_t end);

  Device& device_;
  std::vector<Piece> pieces_;
  std::vector<CUgraphNode> nodes_;  ///< in the graphs of the pieces, by place
};

}  // namespace kernwright
