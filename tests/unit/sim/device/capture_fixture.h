// Captures of the simulated driver, for tests.
#pragma once

#include "unit/sim/device/stream_fixture.h"

namespace kernwright::sim {

/// State of a stream's capture.
inline CUstreamCaptureStatus capture_status(const CurrentDevice& device, CUstream stream) {
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  REQUIRE(device.api.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS);
  return status;
}

inline std::vector<CUgraphNode> nodes_of(const CurrentDevice& device, CUgraph graph) {
  std::size_t count = 0;
  REQUIRE(device.api.cuGraphGetNodes(graph, nullptr, &count) == CUDA_SUCCESS);
  std::vector<CUgraphNode> nodes(count);
  REQUIRE(device.api.cuGraphGetNodes(graph, nodes.data(), &count) == CUDA_SUCCESS);
  return nodes;
}

inline std::vector<CUgraphNodeType> types_of(const CurrentDevice& device, CUgraph graph) {
  std::vector<CUgraphNodeType> types;
  for (const CUgraphNode node : nodes_of(device, graph)) {
    types.emplace_back();
    REQUIRE(device.api.cuGraphNodeGetType(node, &types.back()) == CUDA_SUCCESS);
  }
  return types;
}

inline std::vector<CUgraphNode> dependencies_of(const CurrentDevice& device, CUgraphNode node) {
  std::size_t count = 0;
  REQUIRE(device.api.cuGraphNodeGetDependencies(node, nullptr, &count) == CUDA_SUCCESS);
  std::vector<CUgraphNode> nodes(count);
  REQUIRE(device.api.cuGraphNodeGetDependencies(node, nodes.data(), &count) == CUDA_SUCCESS);
  return nodes;
}

inline void begin_capture(const CurrentDevice& device, CUstream stream,
                          CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
  REQUIRE(device.api.cuStreamBeginCapture(stream, mode) == CUDA_SUCCESS);
}

inline CUgraph end_capture(const CurrentDevice& device, CUstream stream) {
  CUgraph graph = nullptr;
  REQUIRE(device.api.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  REQUIRE(graph != nullptr);
  return graph;
}

inline CUgraphExec instantiate(const CurrentDevice& device, CUgraph graph,
                               unsigned long long flags = 0) {
  CUgraphExec executable = nullptr;
  REQUIRE(device.api.cuGraphInstantiateWithFlags(&executable, graph, flags) == CUDA_SUCCESS);
  return executable;
}

}  // namespace kernwright::sim
