// The common part of all kinds of work, and the kinds of a few lines.
#include "sim/device/stream/work.h"

#include "sim/device/graph/graph.h"
#include "sim/device/sim_driver.h"

#include <chrono>

namespace kernwright::sim {

bool& in_host_function() noexcept {
  static thread_local bool inside = false;
  return inside;
}

void Mark::reach() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  done = true;
}

void perform(const HostWork& work, AccessLog*) {
  struct Inside {
    Inside() { in_host_function() = true; }
    ~Inside() { in_host_function() = false; }
  } const inside;
  work.function(work.user_data);
}

void perform(const Work& work, AccessLog* log) {
  std::visit([log](const auto& kind) { perform(kind, log); }, work);
}

void check(const Work& work) {
  if (const auto* copy = std::get_if<CopyWork>(&work)) check(*copy);
  if (const auto* fill = std::get_if<FillWork>(&work)) check(*fill);
}

void settle(const Work& work) {
  const auto* const graph = std::get_if<GraphWork>(&work);
  if (graph == nullptr) return;
  for (const auto& mark : graph->marks) {
    if (mark != nullptr && !mark->done) mark->reach();
  }
}

std::string describe(const Work& work) {
  struct Names {
    std::string operator()(const EmptyWork& empty) const { return empty.call; }
    std::string operator()(const KernelWork& kernel) const {
      return "kernel " + kernel.function->name;
    }
    std::string operator()(const CopyWork& copy) const { return copy.call; }
    std::string operator()(const FillWork& fill) const { return fill.call; }
    std::string operator()(const HostWork&) const { return "cuLaunchHostFunc"; }
    std::string operator()(const RecordWork&) const { return "cuEventRecord"; }
    std::string operator()(const WaitWork&) const { return "cuStreamWaitEvent"; }
    std::string operator()(const AllocWork&) const { return "cuMemAllocAsync"; }
    std::string operator()(const FreeWork&) const { return "cuMemFreeAsync"; }
    std::string operator()(const GraphWork& graph) const {
      return "graph of " + std::to_string(graph.plan->nodes.size()) + " nodes";
    }
  };
  return std::visit(Names{}, work);
}

}  // namespace kernwright::sim
