// Captures and graphs of the fake driver: nodes are recorded, a launch of a graph notes its
// kernels.
#include "unit/core/fake_graph.h"

#include <algorithm>
#include <memory>
#include <set>

namespace kernwright::testing {
namespace {

struct Node {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
  std::vector<Node*> dependencies = {};
  CUfunction function = nullptr;
  FakeLaunch launch = {};
  const Node* original = nullptr;    ///< that it is a clone of
  struct Recorded* clone = nullptr;  ///< that it is in
};

struct Recorded {
  std::vector<std::unique_ptr<Node>> nodes;
};

struct Executable {
  std::vector<Node> nodes;
  std::map<const Node*, std::size_t> place;  ///< by the node of the graph it was made from
};

struct Running {
  std::uint64_t id = 0;
  CUstream origin = nullptr;
  std::unique_ptr<Recorded> graph = std::make_unique<Recorded>();
  std::map<CUstream, std::vector<Node*>> heads;  ///< the nodes before the next one of a stream
  bool broken = false;
};

struct Place {
  std::uint64_t capture = 0;
  std::vector<Node*> nodes;
};

struct State {
  std::uint64_t last_id = 0;
  std::vector<std::unique_ptr<Running>> running;
  std::map<CUevent, Place> events;
};

State& state() {
  static auto* const instance = new State;
  return *instance;
}

FakeDriver& fake() { return FakeDriver::get(); }

Running* running_on(CUstream stream) {
  for (const auto& entry : state().running) {
    if (entry->heads.count(stream) != 0) return entry.get();
  }
  return nullptr;
}

Recorded* graph_of(CUgraph graph) { return reinterpret_cast<Recorded*>(graph); }
Executable* executable_of(CUgraphExec handle) { return reinterpret_cast<Executable*>(handle); }
Node* node_of(CUgraphNode node) { return reinterpret_cast<Node*>(node); }

void append(Running& running, CUstream stream, Node node) {
  node.dependencies = running.heads[stream];
  running.graph->nodes.push_back(std::make_unique<Node>(std::move(node)));
  running.heads[stream] = {running.graph->nodes.back().get()};
}

CUresult end_capture(CUstream stream, CUgraph* graph) {
  *graph = nullptr;
  Running* const running = running_on(stream);
  if (running == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (running->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  const auto owned = std::find_if(state().running.begin(), state().running.end(),
                                  [&](const auto& entry) { return entry.get() == running; });
  const std::unique_ptr<Running> ended = std::move(*owned);
  state().running.erase(owned);
  if (ended->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::set<const Node*> reached(ended->heads[stream].begin(), ended->heads[stream].end());
  for (auto node = ended->graph->nodes.rbegin(); node != ended->graph->nodes.rend(); ++node) {
    if (reached.count(node->get()) == 0) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    reached.insert((*node)->dependencies.begin(), (*node)->dependencies.end());
  }
  *graph = reinterpret_cast<CUgraph>(ended->graph.release());
  fake().made("graph", *graph);
  return CUDA_SUCCESS;
}

CUresult wait_event(CUstream stream, CUevent event) {
  const Place& place = state().events[event];
  Running* const running = running_on(stream);
  if (place.capture == 0) {
    if (running == nullptr) return CUDA_SUCCESS;
    running->broken = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  for (const auto& entry : state().running) {
    if (entry->id != place.capture) continue;
    auto& heads = entry->heads[stream];
    for (Node* node : place.nodes) {
      if (std::find(heads.begin(), heads.end(), node) == heads.end()) heads.push_back(node);
    }
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult clone_graph(CUgraph* made, CUgraph graph) {
  auto clone = std::make_unique<Recorded>();
  std::map<const Node*, Node*> copies;
  for (const auto& node : graph_of(graph)->nodes) {
    clone->nodes.push_back(std::make_unique<Node>(*node));
    Node& copy = *clone->nodes.back();
    copy.original = node.get();
    copy.clone = clone.get();
    for (Node*& before : copy.dependencies) before = copies.at(before);
    copies[node.get()] = &copy;
  }
  *made = reinterpret_cast<CUgraph>(clone.release());
  fake().made("graph", *made);
  return CUDA_SUCCESS;
}

CUresult find_clone(CUgraphNode* node, CUgraphNode original, CUgraph clone) {
  for (const auto& each : graph_of(clone)->nodes) {
    if (each->original == node_of(original)) {
      *node = reinterpret_cast<CUgraphNode>(each.get());
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_VALUE;
}

/// A node of a clone.
CUresult destroy_node(CUgraphNode handle) {
  Node* const node = node_of(handle);
  auto& nodes = node->clone->nodes;
  for (const auto& each : nodes) std::erase(each->dependencies, node);
  std::erase_if(nodes, [&](const auto& each) { return each.get() == node; });
  return CUDA_SUCCESS;
}

CUresult instantiate(CUgraphExec* made, CUgraph graph) {
  auto executable = std::make_unique<Executable>();
  for (const auto& node : graph_of(graph)->nodes) {
    executable->place[node.get()] = executable->nodes.size();
    executable->nodes.push_back(*node);
  }
  *made = reinterpret_cast<CUgraphExec>(executable.release());
  fake().made("executable", *made);
  return CUDA_SUCCESS;
}

CUresult update(CUgraphExec handle, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  Executable& executable = *executable_of(handle);
  const auto& nodes = graph_of(graph)->nodes;
  if (nodes.size() != executable.nodes.size()) {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) executable.nodes[i].launch = nodes[i]->launch;
  return CUDA_SUCCESS;
}

CUresult set_arguments(CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& p) {
  Executable& executable = *executable_of(handle);
  const auto found = executable.place.find(node_of(node));
  if (found == executable.place.end()) return CUDA_ERROR_INVALID_VALUE;
  FakeLaunch& launch = executable.nodes[found->second].launch;
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    launch.arguments[i].assign(static_cast<const char*>(p.kernelParams[i]),
                               launch.arguments[i].size());
  }
  return CUDA_SUCCESS;
}

template <typename Handle, typename Object>
CUresult destroy(Handle handle, const char* kind, Object* object) {
  if (!fake().gone(kind, handle)) return CUDA_ERROR_INVALID_HANDLE;
  delete object;
  return CUDA_SUCCESS;
}

void fill_capture(DriverApi& api) {
  KW_FAKE(cuStreamBeginCapture, (CUstream stream, CUstreamCaptureMode),
          if (running_on(stream) != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
          auto running = std::make_unique<Running>(); running->id = ++state().last_id;
          running->origin = stream; running->heads[stream] = {};
          state().running.push_back(std::move(running)); return CUDA_SUCCESS;);
  KW_FAKE(cuStreamEndCapture, (CUstream stream, CUgraph * graph),
          return end_capture(stream, graph););
  KW_FAKE(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus * status),
          const Running* const running = running_on(stream);
          *status = running == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
                    : running->broken  ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
          return CUDA_SUCCESS;);
  KW_FAKE(cuStreamGetCaptureInfo,
          (CUstream stream, CUstreamCaptureStatus * status, cuuint64_t * id, CUgraph*,
           const CUgraphNode**, std::size_t*),
          const Running* const running = running_on(stream);
          *status =
              running == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE : CU_STREAM_CAPTURE_STATUS_ACTIVE;
          if (running != nullptr)* id = running->id; return CUDA_SUCCESS;);
  KW_FAKE(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned),
          return wait_event(stream, event););
  KW_FAKE(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode),
          static thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
          std::swap(current, *mode); return CUDA_SUCCESS;);
  KW_FAKE(cuEventRecordWithFlags, (CUevent, CUstream stream, unsigned),
          Running* const running = running_on(stream);
          if (running == nullptr) return CUDA_ERROR_INVALID_VALUE;
          append(*running, stream, {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD});
          return CUDA_SUCCESS;);
}

void fill_graph(DriverApi& api) {
  KW_FAKE(cuGraphInstantiateWithFlags, (CUgraphExec * made, CUgraph graph, unsigned long long),
          return instantiate(made, graph););
  KW_FAKE(cuGraphClone, (CUgraph * made, CUgraph graph), return clone_graph(made, graph););
  KW_FAKE(cuGraphNodeFindInClone, (CUgraphNode * node, CUgraphNode original, CUgraph clone),
          return find_clone(node, original, clone););
  KW_FAKE(cuGraphDestroyNode, (CUgraphNode node), return destroy_node(node););
  KW_FAKE(cuGraphUpload, (CUgraphExec, CUstream), return CUDA_SUCCESS;);
  KW_FAKE(
      cuGraphLaunch, (CUgraphExec handle, CUstream stream),
      for (const Node& node
           : executable_of(handle)->nodes) {
        if (node.type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
        fake().launches.push_back(node.launch);
        fake().launches.back().stream = stream;
      } return CUDA_SUCCESS;);
  KW_FAKE(cuGraphDestroy, (CUgraph graph), return destroy(graph, "graph", graph_of(graph)););
  KW_FAKE(cuGraphExecDestroy, (CUgraphExec handle),
          return destroy(handle, "executable", executable_of(handle)););
  KW_FAKE(
      cuGraphGetNodes, (CUgraph graph, CUgraphNode * nodes, std::size_t * count),
      const auto& all = graph_of(graph)->nodes;
      for (std::size_t i = 0; nodes != nullptr && i < all.size();
           ++i) { nodes[i] = reinterpret_cast<CUgraphNode>(all[i].get()); }* count = all.size();
      return CUDA_SUCCESS;);
  KW_FAKE(cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType * type),
          *type = node_of(node)->type;
          return CUDA_SUCCESS;);
  KW_FAKE(
      cuGraphNodeGetDependencies,
      (CUgraphNode node, CUgraphNode * dependencies, std::size_t * count),
      const auto& all = node_of(node)->dependencies;
      for (std::size_t i = 0; dependencies != nullptr && i < all.size();
           ++i) { dependencies[i] = reinterpret_cast<CUgraphNode>(all[i]); }* count = all.size();
      return CUDA_SUCCESS;);
  KW_FAKE(cuGraphKernelNodeGetParams, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS * parameters),
          const Node& found = *node_of(node);
          const FakeLaunch& launch = found.launch; *parameters = {};
          parameters->func = found.function; parameters->gridDimX = launch.grid[0];
          parameters->gridDimY = launch.grid[1]; parameters->gridDimZ = launch.grid[2];
          parameters->blockDimX = launch.block[0]; parameters->blockDimY = launch.block[1];
          parameters->blockDimZ = launch.block[2]; parameters->sharedMemBytes = launch.shared_bytes;
          return CUDA_SUCCESS;);
  KW_FAKE(cuGraphExecUpdate,
          (CUgraphExec handle, CUgraph graph, CUgraphExecUpdateResultInfo * info),
          return update(handle, graph, info););
  KW_FAKE(cuGraphExecKernelNodeSetParams,
          (CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters),
          return set_arguments(handle, node, *parameters););
}

}  // namespace

bool capture_launch(CUfunction function, const FakeLaunch& launch) {
  Running* const running = running_on(launch.stream);
  if (running == nullptr) return false;
  append(*running, launch.stream, {.function = function, .launch = launch});
  return true;
}

void capture_event(CUevent event, CUstream stream) {
  Running* const running = running_on(stream);
  state().events[event] = running == nullptr ? Place{} : Place{running->id, running->heads[stream]};
}

void break_captures() {
  for (const auto& running : state().running) running->broken = true;
}

void reset_captures() {
  state().running.clear();
  state().events.clear();
}

void fill_graphs(DriverApi& api) {
  fill_capture(api);
  fill_graph(api);
}

}  // namespace kernwright::testing
