// Each piece is a clone of the graph without the nodes of the others.
#include "core/graph/graph_pieces.h"

#include "core/device.h"
#include "core/graph/capture.h"
#include "core/lifecycle.h"

#include <algorithm>

namespace kernwright {

std::unique_ptr<GraphPieces> GraphPieces::make(Device& device, CUgraph graph,
                                               const std::vector<CUgraphNode>& nodes,
                                               std::size_t count) {
  count = std::min(count, nodes.size());
  std::unique_ptr<GraphPieces> made(new GraphPieces(device));
  made->pieces_.reserve(count);  // so that no clone is lost for want of memory
  made->nodes_.reserve(nodes.size());
  for (std::size_t i = 0; i < count; ++i) {
    CUgraph clone = nullptr;
    const CUresult result = device.driver().cuGraphClone(&clone, graph);
    if (result == CUDA_ERROR_NOT_SUPPORTED) return nullptr;
    device.check(result, "cuGraphClone");
    made->pieces_.push_back({clone, nullptr, (i + 1) * nodes.size() / count});
    made->add(clone, nodes, made->pieces_.back().end);
  }
  return made;
}

/// Finishes the last piece: its nodes begin behind those of the pieces before it.
void GraphPieces::add(CUgraph graph, const std::vector<CUgraphNode>& nodes, std::size_t end) {
  const DriverApi& api = device_.driver();
  const std::size_t begin = nodes_.size();
  for (std::size_t place = 0; place < nodes.size(); ++place) {
    CUgraphNode node = nullptr;
    device_.check(api.cuGraphNodeFindInClone(&node, nodes[place], graph), "cuGraphNodeFindInClone");
    if (place >= begin && place < end) {
      nodes_.push_back(node);
    } else {
      device_.check(api.cuGraphDestroyNode(node), "cuGraphDestroyNode");
    }
  }
  const RelaxedCapture relaxed(device_);  // another stream of this thread may be captured
  device_.check(api.cuGraphInstantiateWithFlags(&pieces_.back().executable, graph, 0),
                "cuGraphInstantiateWithFlags");
}

GraphPieces::~GraphPieces() {
  ReleaseGuard guard(device_);
  if (!guard) return;
  const DriverApi& api = device_.driver();
  // Launches that are queued or run go on: the driver frees the executables after them.
  for (const Piece& piece : pieces_) {
    if (piece.executable != nullptr) {
      guard.report(api.cuGraphExecDestroy(piece.executable), "cuGraphExecDestroy");
    }
    guard.report(api.cuGraphDestroy(piece.graph), "cuGraphDestroy");
  }
}

void GraphPieces::set(std::size_t place, const CUDA_KERNEL_NODE_PARAMS& parameters) {
  const auto piece = std::find_if(pieces_.begin(), pieces_.end(),
                                  [&](const Piece& each) { return place < each.end; });
  const ContextGuard guard(device_, parameters.ctx);
  device_.check(device_.driver().cuGraphExecKernelNodeSetParams(piece->executable, nodes_.at(place),
                                                                &parameters),
                "cuGraphExecKernelNodeSetParams");
}

}  // namespace kernwright
