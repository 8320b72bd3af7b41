// Driver functions of graphs and their nodes.
#include "sim/device/graph/graph.h"

#include "sim/device/launch/launch.h"
#include "sim/device/module/function.h"
#include "sim/device/sim_driver.h"
#include "sim/device/teardown.h"

#include <algorithm>

namespace kernwright::sim {

GraphMemory::~GraphMemory() {
  if (address != 0) release_graph_memory(address);
}

bool Graph::owns_memory() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
    return node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
  });
}

CUgraphNodeType work_type(const Work& work) {
  constexpr CUgraphNodeType kTypes[] = {
      // in the order of Work's alternatives
      CU_GRAPH_NODE_TYPE_EMPTY,      CU_GRAPH_NODE_TYPE_KERNEL,    CU_GRAPH_NODE_TYPE_MEMCPY,
      CU_GRAPH_NODE_TYPE_MEMSET,     CU_GRAPH_NODE_TYPE_HOST,      CU_GRAPH_NODE_TYPE_EVENT_RECORD,
      CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_FREE,
      CU_GRAPH_NODE_TYPE_GRAPH};
  return kTypes[work.index()];
}

std::shared_ptr<Graph> make_graph() {
  auto graph = std::make_shared<Graph>();
  graph->handle = sim_driver().graphs.insert(graph);
  return graph;
}

std::shared_ptr<Graph> find_graph(CUgraph handle) {
  auto graph = sim_driver().graphs.find(handle);
  require(graph != nullptr);
  return graph;
}

std::shared_ptr<GraphNode> find_node(CUgraphNode handle) {
  auto node = sim_driver().nodes.find(handle);
  require(node != nullptr);
  return node;
}

void prepare_node(Work& work) {
  if (auto* alloc = std::get_if<AllocWork>(&work)) {
    auto memory = std::make_shared<GraphMemory>();
    adopt_for_graph(alloc->address, memory);
    memory->address = alloc->address;
    memory->bytes = alloc->bytes;
    alloc->graph = std::move(memory);
  }
  if (const auto* free = std::get_if<FreeWork>(&work)) require(free->graph != nullptr);
  if (auto* copy = std::get_if<CopyWork>(&work)) copy->staged.clear();
}

std::shared_ptr<GraphNode> add_node(const std::shared_ptr<Graph>& graph, Work&& work,
                                    std::vector<std::shared_ptr<GraphNode>> dependencies) {
  auto node = std::make_shared<GraphNode>();
  node->id = sim_driver().next_id();
  node->type = work_type(work);
  node->work = std::move(work);
  // A node waiting in a graph does not keep its module: an unloaded one is found at the launch.
  if (auto* kernel = std::get_if<KernelWork>(&node->work)) kernel->module = nullptr;
  node->dependencies = std::move(dependencies);
  node->graph = graph;
  node->handle = sim_driver().nodes.insert(node);
  const std::lock_guard lock(graph->mutex);
  graph->nodes.push_back(node);
  return node;
}

void discard(Graph& graph) {
  SimDriver& instance = sim_driver();
  instance.graphs.remove(graph.handle);
  const std::lock_guard lock(graph.mutex);
  for (const auto& node : graph.nodes) instance.nodes.remove(node->handle);
}

std::shared_ptr<const GraphPlan> make_plan(Graph& graph) {
  auto plan = std::make_shared<GraphPlan>();
  std::map<const GraphNode*, std::uint32_t> places;
  const std::lock_guard lock(graph.mutex);
  for (const auto& node : graph.nodes) {
    GraphPlan::Node planned{node->work, node->type, node->id, {}, node->id};
    for (const auto& before : node->dependencies) {
      planned.after.push_back(places.find(before.get())->second);
    }
    places.emplace(node.get(), static_cast<std::uint32_t>(plan->nodes.size()));
    plan->nodes.push_back(std::move(planned));
  }
  return plan;
}

namespace {

/// The protocol of all lists: without room the number of entries, else entries and their number,
/// with nulls behind them.
void write_list(const std::vector<std::shared_ptr<GraphNode>>& nodes, CUgraphNode* to,
                std::size_t* count) {
  require(count != nullptr);
  if (to != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) to[i] = i < nodes.size() ? nodes[i]->handle : nullptr;
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
}

KernelWork make_kernel_work(const CUDA_KERNEL_NODE_PARAMS* parameters) {
  require(parameters != nullptr && parameters->kern == nullptr);
  const auto context =
      parameters->ctx == nullptr ? current_context() : live_context(parameters->ctx);
  KernelWork work = prepare({parameters->func,
                             {parameters->gridDimX, parameters->gridDimY, parameters->gridDimZ},
                             {parameters->blockDimX, parameters->blockDimY, parameters->blockDimZ},
                             parameters->sharedMemBytes,
                             parameters->kernelParams,
                             parameters->extra,
                             false},
                            *context);
  work.module = nullptr;
  return work;
}

/// The node and its graph, locked by the caller. Throws Failure INVALID_VALUE for other nodes.
std::pair<std::shared_ptr<GraphNode>, std::shared_ptr<Graph>> find_kernel_node(CUgraphNode handle) {
  auto node = find_node(handle);
  auto graph = node->graph.lock();
  require(graph != nullptr && node->type == CU_GRAPH_NODE_TYPE_KERNEL);
  return {std::move(node), std::move(graph)};
}

/// The context that a kernel runs in.
CUcontext work_context(const KernelWork& work) {
  return work.green != nullptr ? work.green->as_context() : work.function->context->device.handle;
}

}  // namespace

void calls::cuGraphCreate(CUgraph* graph, unsigned int flags) {
  require(graph != nullptr && flags == 0);
  *graph = make_graph()->handle;
}

void calls::cuGraphDestroy(CUgraph handle) {
  const auto graph = find_graph(handle);
  require(!graph->capturing);
  discard(*graph);
}

/// NOTE: graphs with memory nodes cannot be cloned (driver API, "Graph memory nodes").
void calls::cuGraphClone(CUgraph* clone, CUgraph original) {
  require(clone != nullptr);
  const auto from = find_graph(original);
  const std::lock_guard lock(from->mutex);
  require(!from->owns_memory(), CUDA_ERROR_NOT_SUPPORTED);
  const auto to = make_graph();
  std::map<const GraphNode*, std::shared_ptr<GraphNode>> copies;
  for (const auto& node : from->nodes) {
    std::vector<std::shared_ptr<GraphNode>> dependencies;
    for (const auto& before : node->dependencies) dependencies.push_back(copies[before.get()]);
    copies[node.get()] = add_node(to, Work(node->work), std::move(dependencies));
    copies[node.get()]->original = node->id;
  }
  *clone = to->handle;
}

void calls::cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone) {
  const auto from = find_node(original);
  const auto graph = find_graph(clone);
  const std::lock_guard lock(graph->mutex);
  const auto found = std::find_if(graph->nodes.begin(), graph->nodes.end(),
                                  [&](const auto& each) { return each->original == from->id; });
  require(node != nullptr && found != graph->nodes.end());
  *node = (*found)->handle;
}

void calls::cuGraphDestroyNode(CUgraphNode handle) {
  const auto node = find_node(handle);
  const auto graph = node->graph.lock();
  require(graph != nullptr && !graph->capturing);
  const std::lock_guard lock(graph->mutex);
  std::erase(graph->nodes, node);
  for (const auto& other : graph->nodes) std::erase(other->dependencies, node);
  sim_driver().nodes.remove(handle);
}

void calls::cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  const auto graph = find_graph(handle);
  const std::lock_guard lock(graph->mutex);
  write_list(graph->nodes, nodes, count);
}

void calls::cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  const auto graph = find_graph(handle);
  const std::lock_guard lock(graph->mutex);
  std::vector<std::shared_ptr<GraphNode>> roots;
  for (const auto& node : graph->nodes)
    if (node->dependencies.empty()) roots.push_back(node);
  write_list(roots, nodes, count);
}

void calls::cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  require(type != nullptr);
  *type = find_node(node)->type;
}

void calls::cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* dependencies,
                                       std::size_t* count) {
  write_list(find_node(node)->dependencies, dependencies, count);
}

void calls::cuGraphAddKernelNode(CUgraphNode* node, CUgraph handle, const CUgraphNode* dependencies,
                                 std::size_t dependency_count,
                                 const CUDA_KERNEL_NODE_PARAMS* parameters) {
  require(node != nullptr && (dependencies != nullptr || dependency_count == 0));
  const auto graph = find_graph(handle);
  std::vector<std::shared_ptr<GraphNode>> before;
  for (std::size_t i = 0; i < dependency_count; ++i) {
    auto dependency = find_node(dependencies[i]);
    require(dependency->graph.lock() == graph);
    require(std::find(before.begin(), before.end(), dependency) == before.end());
    before.push_back(std::move(dependency));
  }
  *node = add_node(graph, make_kernel_work(parameters), std::move(before))->handle;
}

/// `kernelParams` points at the node's own copies, good until its next change.
void calls::cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* parameters) {
  require(parameters != nullptr);
  const auto [node, graph] = find_kernel_node(handle);
  const std::lock_guard lock(graph->mutex);
  auto& work = std::get<KernelWork>(node->work);
  node->parameters.clear();
  const auto info = get_info(*work.function);
  for (const ParameterSlot& slot : info->parameters) {
    node->parameters.push_back(work.parameters.data() + slot.offset);
  }
  const auto [x, y, z] = work.grid;
  const auto [u, v, w] = work.block;
  void** const slots = node->parameters.empty() ? nullptr : node->parameters.data();
  *parameters = {work.handle,       x, y, z, u, v, w, work.shared_bytes, slots, nullptr, nullptr,
                 work_context(work)};
}

void calls::cuGraphKernelNodeSetParams(CUgraphNode handle,
                                       const CUDA_KERNEL_NODE_PARAMS* parameters) {
  const auto [node, graph] = find_kernel_node(handle);
  KernelWork work = make_kernel_work(parameters);
  const std::lock_guard lock(graph->mutex);
  auto& old = std::get<KernelWork>(node->work);
  require(work.function->context->id == old.function->context->id);
  work.cooperative = old.cooperative;
  work.green = old.green;
  old = std::move(work);
}

void calls::cuGraphExecKernelNodeSetParams(CUgraphExec handle, CUgraphNode node_handle,
                                           const CUDA_KERNEL_NODE_PARAMS* parameters) {
  const auto executable = sim_driver().executables.find(handle);
  require(executable != nullptr);
  const auto [node, graph] = find_kernel_node(node_handle);
  KernelWork work = make_kernel_work(parameters);
  const std::lock_guard lock(executable->mutex);
  auto plan = std::make_shared<GraphPlan>(*executable->plan);
  const auto found =
      std::ranges::find_if(plan->nodes, [id = node->id](const GraphPlan::Node& planned) {
        return planned.id == id || planned.update_id == id;
      });
  require(found != plan->nodes.end());
  auto& old = std::get<KernelWork>(found->work);
  require(work.function->context->id == old.function->context->id);
  require(!context_stack().empty() && context_stack().back() == work_context(old));
  work.cooperative = old.cooperative;
  work.green = old.green;
  old = std::move(work);
  executable->plan = std::move(plan);
}

}  // namespace kernwright::sim
