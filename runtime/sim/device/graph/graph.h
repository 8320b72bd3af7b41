// Graphs: nodes of work with dependencies, and their form after instantiation.
#pragma once

#include "sim/device/stream/work.h"

#include <atomic>
#include <mutex>

namespace kernwright::sim {

struct Graph;

/// Memory from the allocation nodes of a graph: the same at each launch.
struct GraphMemory {
  GraphMemory() = default;
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  std::uint64_t address = 0, bytes = 0;
  std::atomic<bool> live{false};  ///< between the allocation node and whatever frees it
};

struct GraphNode {
  CUgraphNode handle = nullptr;
  std::uint64_t id = 0;        ///< never reused
  std::uint64_t original = 0;  ///< id of the node that it is a clone of
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Work work;
  std::vector<std::shared_ptr<GraphNode>> dependencies;
  std::vector<void*> parameters;  ///< into the work's parameter block, for those who ask
  std::weak_ptr<Graph> graph;
};

/// Nodes are in the order of their making, so dependencies come first.
struct Graph {
  CUgraph handle = nullptr;
  std::atomic<bool> capturing{false};  ///< belongs to a capture that is not over
  std::mutex mutex;                    ///< guards nodes and what they hold
  std::vector<std::shared_ptr<GraphNode>> nodes;

  bool owns_memory() const;
};

/// The contents of a launch. Never changed: updates make new ones, and waiting launches keep
/// theirs.
struct GraphPlan {
  struct Node {
    Work work;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    std::uint64_t id = 0;              ///< of the node that it was made from
    std::vector<std::uint32_t> after;  ///< positions in `nodes`
    std::uint64_t update_id = 0;       ///< of the node that it was last updated from
  };
  std::vector<Node> nodes;
};

struct GraphExec {
  unsigned long long flags = 0;
  std::mutex mutex;  ///< guards the rest
  std::shared_ptr<const GraphPlan> plan;
  std::shared_ptr<Mark> last;  ///< end of the launch before
};

/// Turns work meant to run into the contents of a node: allocated memory becomes the graph's,
/// memory to copy is read at each launch. Throws Failure INVALID_VALUE for a free of other memory
/// (driver API, "Graph memory nodes").
void prepare_node(Work& work);
/// Adds a node behind `dependencies` and gives it a handle. Call with the graph's mutex open.
std::shared_ptr<GraphNode> add_node(const std::shared_ptr<Graph>& graph, Work&& work,
                                    std::vector<std::shared_ptr<GraphNode>> dependencies);
/// Ends the handles of the graph and its nodes.
void discard(Graph& graph);
std::shared_ptr<Graph> make_graph();
/// Throws Failure INVALID_VALUE.
std::shared_ptr<Graph> find_graph(CUgraph handle);
std::shared_ptr<GraphNode> find_node(CUgraphNode handle);

CUgraphNodeType work_type(const Work& work);
std::shared_ptr<const GraphPlan> make_plan(Graph& graph);

}  // namespace kernwright::sim
