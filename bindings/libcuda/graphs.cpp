// Functions of graphs and captures in signatures older and newer than those of the table.
#include "libcuda/functions.h"
#include "libcuda/user_objects.h"

#include <algorithm>
#include <vector>

namespace kernwright::libcuda {
namespace {

using sim::driver_api;

/// CUDA_KERNEL_NODE_PARAMS_v1: no kernel of a library, no context.
struct NodeParameters1 {
  CUfunction func;
  unsigned int grid_x, grid_y, grid_z;
  unsigned int block_x, block_y, block_z;
  unsigned int shared_bytes;
  void** parameters;
  void** extra;
};

/// CUgraphEdgeData; all zeros are a plain dependency, and there are no others.
struct EdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};
/// Good until the thread's next call.
const EdgeData* plain_edges(std::size_t count) {
  static thread_local std::vector<EdgeData> edges;
  edges.resize(std::max<std::size_t>(count, 1));
  return edges.data();
}

CUDA_KERNEL_NODE_PARAMS widened(const NodeParameters1& old) {
  return {kernel_function(old.func),
          old.grid_x,
          old.grid_y,
          old.grid_z,
          old.block_x,
          old.block_y,
          old.block_z,
          old.shared_bytes,
          old.parameters,
          old.extra,
          nullptr,
          nullptr};
}

CUresult add_kernel_node_1(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           std::size_t count, const NodeParameters1* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = widened(*parameters);
  return driver_api().cuGraphAddKernelNode(node, graph, dependencies, count, &wide);
}

CUresult get_node_1(CUgraphNode node, NodeParameters1* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS wide{};
  const CUresult result = driver_api().cuGraphKernelNodeGetParams(node, &wide);
  if (result != CUDA_SUCCESS) return result;
  *parameters = {wide.func,         wide.gridDimX,  wide.gridDimY,  wide.gridDimZ,
                 wide.blockDimX,    wide.blockDimY, wide.blockDimZ, wide.sharedMemBytes,
                 wide.kernelParams, wide.extra};
  return CUDA_SUCCESS;
}

CUresult set_node_1(CUgraphNode node, const NodeParameters1* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = widened(*parameters);
  return driver_api().cuGraphKernelNodeSetParams(node, &wide);
}

CUresult set_executable_node_1(CUgraphExec executable, CUgraphNode node,
                               const NodeParameters1* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = widened(*parameters);
  return driver_api().cuGraphExecKernelNodeSetParams(executable, node, &wide);
}

CUresult instantiate(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  const CUresult result = driver_api().cuGraphInstantiateWithFlags(executable, graph, flags);
  if (result == CUDA_SUCCESS) keep_for(*executable, graph);
  return result;
}

/// With room for a failed node and for words about it; both stay empty.
CUresult instantiate_1(CUgraphExec* executable, CUgraph graph, CUgraphNode* failed, char* log_text,
                       std::size_t log_bytes) {
  if (failed != nullptr) *failed = nullptr;
  if (log_text != nullptr && log_bytes > 0) *log_text = '\0';
  return instantiate(executable, graph, 0);
}

/// CUDA_GRAPH_INSTANTIATE_PARAMS.
struct InstantiateParameters {
  cuuint64_t flags;
  CUstream upload_stream;
  CUgraphNode failed;
  int result;  ///< 0: success, 1: error
};

CUresult instantiate_parameters(CUgraphExec* executable, CUgraph graph,
                                InstantiateParameters* parameters) {
  constexpr cuuint64_t kUpload = 2;
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const DriverApi& api = driver_api();
  parameters->failed = nullptr;
  CUresult result = instantiate(executable, graph, parameters->flags & ~kUpload);
  if (result == CUDA_SUCCESS && (parameters->flags & kUpload) != 0)
    result = api.cuGraphUpload(*executable, parameters->upload_stream);
  parameters->result = result == CUDA_SUCCESS ? 0 : 1;
  return result;
}

CUresult update_2(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  const CUresult result = driver_api().cuGraphExecUpdate(executable, graph, info);
  if (result == CUDA_SUCCESS) keep_for(executable, graph);
  return result;
}

CUresult update_1(CUgraphExec executable, CUgraph graph, CUgraphNode* failed,
                  CUgraphExecUpdateResult* outcome) {
  if (outcome == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info{};
  const CUresult result = update_2(executable, graph, &info);
  *outcome = info.result;
  if (failed != nullptr) *failed = info.errorNode;
  return result;
}

CUresult dependencies_2(CUgraphNode node, CUgraphNode* dependencies, EdgeData* edges,
                        std::size_t* count) {
  const CUresult result = driver_api().cuGraphNodeGetDependencies(node, dependencies, count);
  if (result == CUDA_SUCCESS && edges != nullptr && dependencies != nullptr)
    for (std::size_t i = 0; i < *count; ++i) edges[i] = {};
  return result;
}

/// Before there were modes.
CUresult begin_capture_1(CUstream stream) {
  return driver_api().cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult capture_info_1(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return driver_api().cuStreamGetCaptureInfo(stream, status, id, nullptr, nullptr, nullptr);
}

CUresult capture_info_3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                        CUgraph* graph, const CUgraphNode** dependencies, const EdgeData** edges,
                        std::size_t* count) {
  const CUgraphNode* nodes = nullptr;
  std::size_t number = 0;
  const CUresult result =
      driver_api().cuStreamGetCaptureInfo(stream, status, id, graph, &nodes, &number);
  if (result != CUDA_SUCCESS) return result;
  if (edges != nullptr) *edges = plain_edges(number);
  if (dependencies != nullptr) *dependencies = nodes;
  if (count != nullptr) *count = number;
  return CUDA_SUCCESS;
}

}  // namespace

std::span<const Function> graph_functions() {
  static const Function rows[] = {
      provide<add_kernel_node_1>("cuGraphAddKernelNode", "cuGraphAddKernelNode", 10000),
      provide<get_node_1>("cuGraphKernelNodeGetParams", "cuGraphKernelNodeGetParams", 10000),
      provide<set_node_1>("cuGraphKernelNodeSetParams", "cuGraphKernelNodeSetParams", 10000),
      provide<set_executable_node_1>("cuGraphExecKernelNodeSetParams",
                                     "cuGraphExecKernelNodeSetParams", 10010),
      provide<instantiate_1>("cuGraphInstantiate", "cuGraphInstantiate", 10000),
      provide<instantiate_1>("cuGraphInstantiate", "cuGraphInstantiate_v2", 11000),
      provide<instantiate>("cuGraphInstantiate", "cuGraphInstantiateWithFlags", 12000),
      provide<instantiate>("cuGraphInstantiateWithFlags", "cuGraphInstantiateWithFlags", 11040),
      provide<instantiate_parameters>("cuGraphInstantiateWithParams",
                                      "cuGraphInstantiateWithParams", 12000),
      provide<update_1>("cuGraphExecUpdate", "cuGraphExecUpdate", 10020),
      provide<update_2>("cuGraphExecUpdate", "cuGraphExecUpdate_v2", 12000),
      provide<dependencies_2>("cuGraphNodeGetDependencies", "cuGraphNodeGetDependencies_v2", 12030),
      provide<begin_capture_1>("cuStreamBeginCapture", "cuStreamBeginCapture", 10000),
      provide<capture_info_1>("cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo", 10010),
      provide<capture_info_3>("cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v3", 12030),
  };
  return rows;
}

}  // namespace kernwright::libcuda
