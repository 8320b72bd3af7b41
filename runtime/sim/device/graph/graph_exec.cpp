// Driver functions for instantiating, updating and launching graphs.
#include "base/format.h"
#include "sim/device/graph/graph.h"
#include "sim/device/sim_driver.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

using Nodes = std::vector<GraphPlan::Node>;

/// Positions of the nodes in an order chosen by the seed among all that respect dependencies.
std::vector<std::uint32_t> choose_order(const Nodes& nodes, std::uint64_t seed) {
  std::vector<std::uint32_t> order, ready;
  std::vector<std::size_t> missing;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    missing.push_back(nodes[i].after.size());
    if (missing.back() == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const std::size_t pick = (seed >> 33) % ready.size();
    const std::uint32_t chosen = ready[pick];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
    order.push_back(chosen);
    for (std::uint32_t i = chosen + 1; i < nodes.size(); ++i) {
      for (const std::uint32_t before : nodes[i].after) {
        if (before == chosen && --missing[i] == 0) ready.push_back(i);
      }
    }
  }
  return order;
}

/// Unordered nodes of one graph must not touch the same bytes either: while the streams' order is
/// checked, each node is one step of an actor of its own.
class NodeOrder {
 public:
  explicit NodeOrder(const Nodes& nodes) : nodes_(nodes), clocks_(nodes.size()) {
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      for (const std::uint32_t before : nodes[i].after) clocks_[i].join(clocks_[before]);
      clocks_[i].advance(i + 1);
    }
    order_.enable(true);
  }

  void note(std::uint32_t i, const AccessLog& log) {
    auto work = std::make_shared<OrderedWork>();
    work->name = describe(nodes_[i].work);
    work->stream = format("node {} of a graph", i);
    work->actor = i + 1;
    work->step = 1;
    work->clock = clocks_[i];
    auto finding = order_.note(work, log.ranges(), false);
    if (finding) throw Failure{CUDA_ERROR_LAUNCH_FAILED, std::move(*finding)};
  }

 private:
  const Nodes& nodes_;
  std::vector<VectorClock> clocks_;
  StreamOrder order_;
};

}  // namespace

void perform(const GraphWork& work, AccessLog* log) {
  const Nodes& nodes = work.plan->nodes;
  std::optional<NodeOrder> check;
  if (log != nullptr) check.emplace(nodes);
  const auto run = [&](std::uint32_t i) {
    if (log == nullptr) {
      perform(nodes[i].work, nullptr);
    } else {
      AccessLog node_log;
      perform(nodes[i].work, &node_log);
      check->note(i, node_log);
      log->merge(node_log);
    }
    if (i < work.marks.size() && work.marks[i] != nullptr) work.marks[i]->reach();
  };
  if (work.seed == 0) {
    for (std::uint32_t i = 0; i < nodes.size(); ++i) run(i);
  } else {
    for (const std::uint32_t i : choose_order(nodes, work.seed)) run(i);
  }
}

namespace {

std::shared_ptr<GraphExec> find_executable(CUgraphExec handle) {
  auto executable = sim_driver().executables.find(handle);
  require(executable != nullptr);
  return executable;
}

/// Memory allocated by the graph must have been freed since the previous launch.
void prepare_memory(const GraphExec& executable, const GraphPlan& plan) {
  const bool frees = (executable.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  for (const GraphPlan::Node& node : plan.nodes) {
    const auto* const alloc = std::get_if<AllocWork>(&node.work);
    if (alloc == nullptr || !alloc->graph->live) continue;
    require(frees);
    alloc->graph->live = false;
  }
}

/// Each launch records its events anew, and waits for the current records of events.
GraphWork make_launch(const std::shared_ptr<const GraphPlan>& plan,
                      std::vector<std::shared_ptr<Mark>>& after) {
  GraphWork work{plan, {}, sim_driver().queues.draw()};
  std::vector<const Event*> recorded;
  for (std::size_t i = 0; i < plan->nodes.size(); ++i) {
    const Work& node = plan->nodes[i].work;
    if (const auto* record = std::get_if<RecordWork>(&node)) {
      work.marks.resize(plan->nodes.size());
      work.marks[i] = std::make_shared<Mark>();
      recorded.push_back(record->event.get());
    }
    if (const auto* wait = std::get_if<WaitWork>(&node)) {
      const Event* const event = wait->event.get();
      if (std::find(recorded.begin(), recorded.end(), event) != recorded.end()) continue;
      const std::lock_guard lock(wait->event->mutex);
      after.push_back(wait->event->mark);
    }
  }
  return work;
}

/// Events point at this launch's marks; these know everything before the launch's end.
void publish_marks(const StreamUse& use, const GraphPlan& plan,
                   const std::vector<std::shared_ptr<Mark>>& marks) {
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i] == nullptr) continue;
    const auto& event = std::get<RecordWork>(plan.nodes[i].work).event;
    if (sim_driver().order.on()) marks[i]->clock = sim_driver().order.stream_clock(*use.stream);
    const std::lock_guard lock(event->mutex);
    event->mark = marks[i];
    event->capture = nullptr;
    event->tips.clear();
  }
}

struct Difference {
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  std::uint64_t node = 0;  ///< id, of the new graph
};

bool same_memory(std::uint64_t a, std::uint64_t b) {
  return sim_driver().get_memory(a) == sim_driver().get_memory(b);
}

/// The reason why `from` cannot replace `to` (cuGraphExecUpdate's list of limitations).
CUgraphExecUpdateResult difference(const GraphPlan::Node& to, const GraphPlan::Node& from) {
  if (to.type != from.type) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  if (const auto* old = std::get_if<KernelWork>(&to.work)) {
    const auto& now = std::get<KernelWork>(from.work);
    if (old->function->context->id != now.function->context->id || old->green != now.green) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    }
    if (old->cooperative != now.cooperative) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    }
  }
  if (const auto* old = std::get_if<CopyWork>(&to.work)) {
    const auto& now = std::get<CopyWork>(from.work);
    const bool same_shape = old->rows == now.rows && old->slices == now.slices;
    if (!same_shape || !same_memory(old->to, now.to) || !same_memory(old->from, now.from)) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
  }
  if (const auto* old = std::get_if<FillWork>(&to.work)) {
    const auto& now = std::get<FillWork>(from.work);
    if (!same_memory(old->to, now.to) || old->height != now.height) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
  }
  const bool memory =
      to.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || to.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
  return memory ? CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED : CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

Difference compare(const Nodes& to, const Nodes& from) {
  for (std::size_t i = 0; i < std::min(to.size(), from.size()); ++i) {
    if (to[i].after != from[i].after && to[i].type == from[i].type) {
      return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, from[i].id};
    }
    const CUgraphExecUpdateResult result = difference(to[i], from[i]);
    if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return {result, from[i].id};
  }
  if (to.size() == from.size()) return {};
  return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
          from.size() > to.size() ? from[to.size()].id : 0};
}

CUgraphNode node_handle(Graph& graph, std::uint64_t id) {
  const std::lock_guard lock(graph.mutex);
  for (const auto& node : graph.nodes) {
    if (node->id == id) return node->handle;
  }
  return nullptr;
}

}  // namespace

void calls::cuGraphInstantiateWithFlags(CUgraphExec* handle, CUgraph graph,
                                        unsigned long long flags) {
  constexpr unsigned long long kAllowed = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                          CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  require(handle != nullptr);
  const auto source = find_graph(graph);
  require((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) == 0, CUDA_ERROR_NOT_SUPPORTED);
  require((flags & ~kAllowed) == 0);
  auto executable = std::make_shared<GraphExec>();
  executable->flags = flags;
  executable->plan = make_plan(*source);
  *handle = sim_driver().executables.insert(std::move(executable));
}

void calls::cuGraphExecDestroy(CUgraphExec handle) {
  require(sim_driver().executables.remove(handle) != nullptr);
}

void calls::cuGraphLaunch(CUgraphExec handle, CUstream stream) {
  const auto executable = find_executable(handle);
  const StreamUse use = use_stream(stream);
  std::unique_lock lock(executable->mutex);
  const std::shared_ptr<const GraphPlan> plan = executable->plan;
  std::vector<std::shared_ptr<Mark>> after{executable->last};
  Work work = make_launch(plan, after);
  if (sim_driver().captures.take(use, work)) return;
  prepare_memory(*executable, *plan);
  const auto marks = std::get<GraphWork>(work).marks;
  lock.unlock();  // the work may run here and now, host functions too
  auto end = sim_driver().queues.issue(use, std::move(work), std::move(after));
  publish_marks(use, *plan, marks);
  lock.lock();
  executable->last = std::move(end);
}

void calls::cuGraphUpload(CUgraphExec handle, CUstream stream) {
  find_executable(handle);
  const StreamUse use = use_stream(stream);
  sim_driver().captures.forbid_in(use);
  submit(use, EmptyWork{"cuGraphUpload"});
}

/// Nodes are paired in the order of their making.
void calls::cuGraphExecUpdate(CUgraphExec handle, CUgraph graph_handle,
                              CUgraphExecUpdateResultInfo* info) {
  require(info != nullptr);
  *info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
  const auto executable = find_executable(handle);
  const auto graph = find_graph(graph_handle);
  const auto from = make_plan(*graph);
  const std::lock_guard lock(executable->mutex);
  auto plan = std::make_shared<GraphPlan>(*executable->plan);
  const Difference found = compare(plan->nodes, from->nodes);
  info->result = found.result;
  info->errorNode = found.node == 0 ? nullptr : node_handle(*graph, found.node);
  require(found.result == CU_GRAPH_EXEC_UPDATE_SUCCESS, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  for (std::size_t i = 0; i < plan->nodes.size(); ++i) {
    plan->nodes[i].work = from->nodes[i].work;
    plan->nodes[i].update_id = from->nodes[i].id;
  }
  executable->plan = std::move(plan);
}

}  // namespace kernwright::sim
