// Reading nodes and edges of a graph, sorted so that order means execution order.
#include "core/graph/graph_shape.h"

#include "core/device.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

namespace kernwright {
namespace {

using Place = std::uint32_t;

/// Edges by places in the driver's order. Clears `exact` where the driver cannot express them.
std::vector<std::vector<Place>> read_edges(Device& device, const std::vector<CUgraphNode>& nodes,
                                           bool& exact) {
  std::unordered_map<CUgraphNode, Place> places;
  for (Place i = 0; i < nodes.size(); ++i) places.emplace(nodes[i], i);
  const DriverApi& api = device.driver();
  std::vector<std::vector<Place>> edges(nodes.size());
  std::vector<CUgraphNode> found;
  for (Place i = 0; i < nodes.size(); ++i) {
    std::size_t count = 0;
    CUresult result = api.cuGraphNodeGetDependencies(nodes[i], nullptr, &count);
    found.resize(count);
    if (result == CUDA_SUCCESS && count != 0) {
      result = api.cuGraphNodeGetDependencies(nodes[i], found.data(), &count);
    }
    if (result == CUDA_ERROR_LOSSY_QUERY || result == CUDA_ERROR_NOT_SUPPORTED) {
      // NOTE: such a node follows the one before it, as in the stream it was captured from.
      exact = false;
      if (i != 0) edges[i].push_back(i - 1);
      continue;
    }
    device.check(result, "cuGraphNodeGetDependencies");
    for (const CUgraphNode node : found) edges[i].push_back(places.at(node));
  }
  return edges;
}

/// Places in an order that respects the edges, the earliest possible first.
std::vector<Place> sorted(const std::vector<std::vector<Place>>& edges) {
  std::vector<std::vector<Place>> followers(edges.size());
  std::vector<std::size_t> missing(edges.size());
  std::priority_queue<Place, std::vector<Place>, std::greater<>> ready;
  for (Place i = 0; i < edges.size(); ++i) {
    missing[i] = edges[i].size();
    for (const Place from : edges[i]) followers[from].push_back(i);
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<Place> order;
  while (!ready.empty()) {
    const Place next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const Place follower : followers[next]) {
      if (--missing[follower] == 0) ready.push(follower);
    }
  }
  return order;
}

}  // namespace

bool GraphShape::same_as(const GraphShape& other) const noexcept {
  return exact && other.exact && types == other.types && dependencies == other.dependencies;
}

GraphShape read_graph_shape(Device& device, CUgraph graph) {
  const DriverApi& api = device.driver();
  std::size_t count = 0;
  device.check(api.cuGraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes");
  std::vector<CUgraphNode> nodes(count);
  if (count != 0) device.check(api.cuGraphGetNodes(graph, nodes.data(), &count), "cuGraphGetNodes");
  GraphShape shape;
  const auto edges = read_edges(device, nodes, shape.exact);
  const std::vector<Place> order = sorted(edges);
  std::vector<Place> new_place(count);
  for (Place i = 0; i < order.size(); ++i) new_place[order[i]] = i;
  for (const Place old : order) {
    shape.nodes.push_back(nodes[old]);
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    device.check(api.cuGraphNodeGetType(nodes[old], &type), "cuGraphNodeGetType");
    shape.types.push_back(type);
    std::vector<Place>& from = shape.dependencies.emplace_back();
    for (const Place place : edges[old]) from.push_back(new_place[place]);
    std::sort(from.begin(), from.end());
  }
  return shape;
}

}  // namespace kernwright
