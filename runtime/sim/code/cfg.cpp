// Depth-first walks over a function's blocks: loops, their depth, and the final order.
#include "sim/code/passes.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

using FlowGraph = std::vector<std::vector<std::uint32_t>>;

FlowGraph find_successors(const Lowered& function) {
  FlowGraph graph(function.blocks.size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    function.blocks[i].successors([&](std::uint32_t to) { graph[i].push_back(to); });
  }
  return graph;
}

/// Post-order from block 0; edges to a still open block (loops) go to `back_edges`.
std::vector<std::uint32_t> post_order(
    const FlowGraph& graph, std::vector<std::pair<std::uint32_t, std::uint32_t>>* back_edges) {
  enum : std::uint8_t { fresh, open, done };
  std::vector<std::uint8_t> state(graph.size(), fresh);
  std::vector<std::uint32_t> order;
  std::vector<std::pair<std::uint32_t, std::size_t>> stack{{0, 0}};
  state[0] = open;
  while (!stack.empty()) {
    auto& [block, next] = stack.back();
    if (next == graph[block].size()) {
      state[block] = done;
      order.push_back(block);
      stack.pop_back();
      continue;
    }
    const std::uint32_t from = block, to = graph[block][next++];
    if (state[to] == open && back_edges != nullptr) back_edges->emplace_back(from, to);
    if (state[to] == fresh) {
      state[to] = open;
      stack.emplace_back(to, 0);
    }
  }
  return order;
}

/// Steps of a walk through all loops, for each block. Depths only matter for speed, so those of a
/// graph with more and larger loops may be too small.
constexpr std::size_t kStepsPerBlock = 256;

/// For each block the number of loops around it: for every header, all blocks on a way to its
/// latches without passing it.
std::vector<std::uint32_t> loop_depths(
    const FlowGraph& graph,
    const std::vector<std::pair<std::uint32_t, std::uint32_t>>& back_edges) {
  FlowGraph predecessors(graph.size());
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    for (const std::uint32_t to : graph[i]) predecessors[to].push_back(i);
  }
  std::vector<std::uint32_t> depth(graph.size(), 0), seen(graph.size(), ~0u), work;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges = back_edges;
  std::sort(edges.begin(), edges.end(),
            [](const auto& x, const auto& y) { return x.second < y.second; });
  std::size_t steps = kStepsPerBlock * graph.size();
  for (std::size_t i = 0; i < edges.size() && steps != 0; ++i) {
    const std::uint32_t header = edges[i].second;
    const auto visit = [&](std::uint32_t block) {
      if (seen[block] == header) return;
      seen[block] = header;
      ++depth[block];
      work.push_back(block);
    };
    if (i == 0 || edges[i - 1].second != header) {
      visit(header);
      work.clear();
    }
    visit(edges[i].first);
    while (!work.empty()) {
      const std::uint32_t block = work.back();
      work.pop_back();
      steps -= std::min(steps, predecessors[block].size());
      for (const std::uint32_t from : predecessors[block]) visit(from);
    }
  }
  return depth;
}

}  // namespace

std::vector<std::uint32_t> block_order(const Lowered& function) {
  FlowGraph graph = find_successors(function);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> back_edges;
  post_order(graph, &back_edges);
  const std::vector<std::uint32_t> depth = loop_depths(graph, back_edges);
  // The last visited comes first in the order: successors inside the loop, then the fall-through.
  for (auto& targets : graph) {
    std::stable_sort(targets.begin(), targets.end(),
                     [&](std::uint32_t x, std::uint32_t y) { return depth[x] < depth[y]; });
  }
  std::vector<std::uint32_t> order = post_order(graph, nullptr);
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace kernwright::sim
