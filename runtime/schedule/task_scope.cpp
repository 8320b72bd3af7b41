// Launches of a task.
#include "schedule/task_scope.h"

#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "core/graph/graph.h"
#include "core/partition.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <utility>

namespace kernwright::schedule {
namespace {

constexpr double kMargin = 1.3;  ///< pieces of a graph are not equally long

[[noreturn]] void refuse_bound(const std::string& kernel, std::uint64_t blocks,
                               std::uint64_t most) {
  throw PartitionError(
      format("{} cannot keep to {} multiprocessors: this driver has no green contexts, the launch "
             "has {} blocks, and it can neither be cut nor have a smaller grid",
             kernel, most, blocks),
      static_cast<int>(std::min<std::uint64_t>(blocks, INT_MAX)), static_cast<int>(most), 1, 1);
}

}  // namespace

std::vector<Task*>& running_here() noexcept {
  thread_local std::vector<Task*> tasks;
  return tasks;
}

TaskScope::TaskScope(SchedulerCore& core, const TaskPointer& task, const Stream& stream,
                     TaskMemory* memory)
    : core_(core), pointer_(task), task_(*task), stream_(stream), memory_(memory), scope_(this) {
  running_here().push_back(task.get());
}

TaskScope::~TaskScope() { running_here().pop_back(); }

bool TaskScope::is_captured(const Stream& stream) const {
  if (!any_capture()) [[likely]]
    return false;
  const ContextGuard guard(core_.device);
  return capture_of(core_.device, stream.handle()) != nullptr;
}

template <typename Queue>
void TaskScope::pass(const WorkKey& work, const Stream& stream, const Queue& queue) {
  if (task_.cancelled_.load(std::memory_order_relaxed)) [[unlikely]] {
    throw TaskCancelled(format("{} was cancelled while it ran", task_.label()));
  }
  const bool is_best_effort = task_.qos() == Qos::best_effort;
  const bool has_share = task_.tenant_->request().has_value();
  if ((!is_best_effort && !has_share) || is_captured(stream)) {
    queue();
    return count(stream);
  }
  task_.is_paced_ = true;
  const Pacer::Number number =
      core_.enter({pointer_, task_.tenant_, is_best_effort, has_share, work});
  try {
    Event begin = core_.take_event();
    begin.record(stream);
    queue();
    Event end = core_.take_event();
    end.record(stream);
    core_.issued(number, std::move(begin), std::move(end));
  } catch (...) {
    core_.forget(number);
    throw;
  }
  count(stream);
}

void TaskScope::pass_pieces(LaunchPieces& pieces, const Stream& stream) {
  while (pieces.left() != 0) pass(pieces.next(), stream, [&] { pieces.queue(); });
}

std::optional<PieceRequest> TaskScope::find_cut(const WorkKey& work) {
  std::optional<Pacer::Cut> wanted;
  {
    const SchedulerCore::Lock lock(core_.mutex_);
    wanted = core_.pacer_.find_cut(work, core_.clock->now());
  }
  if (!wanted) return std::nullopt;
  return PieceRequest{.launch_us = 1e6 * seconds(wanted->whole),
                      .latency_us = 1e6 * seconds(wanted->latency),
                      .multiprocessors = core_.multiprocessors()};
}

std::unique_ptr<LaunchPieces> TaskScope::note_cut(const WorkKey& work,
                                                  std::unique_ptr<LaunchPieces> pieces) {
  const SchedulerCore::Lock lock(core_.mutex_);
  const bool is_graph = work.second == 0;  // its pieces differ, so none tells the cost of all
  if (pieces == nullptr) {
    core_.pacer_.note_cut(work, {}, 0);
  } else {
    core_.pacer_.note_cut(work, is_graph ? WorkKey() : pieces->next(), pieces->left());
  }
  return pieces;
}

template <typename Cutter>
std::unique_ptr<LaunchPieces> TaskScope::cut(const WorkKey& work, const Cutter& cutter) {
  const std::optional<PieceRequest> request = find_cut(work);
  return request ? note_cut(work, cutter(*request)) : nullptr;
}

void TaskScope::launch(const Kernel& kernel, const LaunchConfig& config,
                       std::span<void* const> arguments, const LaunchSite& site) {
  if (memory_ != nullptr) memory_->note_kernel(kernel);
  const std::uint64_t most = core_.options.most_blocks;
  if (most != 0 && config.grid.count() > most) [[unlikely]] {
    return launch_within(most, kernel, config, arguments, site);
  }
  const WorkKey work{kernel.handle(), config.grid.count()};
  if (core_.options.cut && task_.qos() == Qos::best_effort && !is_captured(config.stream)) {
    const auto pieces = cut(work, [&](const PieceRequest& request) {
      return core_.options.cut(kernel, config, arguments, site, request);
    });
    if (pieces != nullptr) {
      return pass_pieces(*pieces, config.stream);
    }
  }
  pass(work, config.stream, [&] { kernel.launch(config, arguments, site); });
}

/// With at most so many blocks at once: a smaller grid for kernels whose blocks share the work,
/// pieces for others.
void TaskScope::launch_within(std::uint64_t most_blocks, const Kernel& kernel,
                              const LaunchConfig& config, std::span<void* const> arguments,
                              const LaunchSite& site) {
  const std::uint64_t cluster = std::max<std::uint64_t>(config.cluster.count(), 1);
  const std::uint64_t rows = std::uint64_t{config.grid.y} * config.grid.z;
  if (config.most_blocks != 0 && most_blocks >= cluster * rows) {
    LaunchConfig smaller = config;
    smaller.grid.x = static_cast<std::uint32_t>(most_blocks / rows / cluster * cluster);
    return pass({kernel.handle(), smaller.grid.count()}, config.stream,
                [&] { kernel.launch(smaller, arguments, site); });
  }
  std::unique_ptr<LaunchPieces> pieces;
  if (core_.options.cut) {
    pieces = core_.options.cut(kernel, config, arguments, site, {.most_blocks = most_blocks});
  }
  if (pieces == nullptr) {
    refuse_bound(kernel.signature().name, config.grid.count(), most_blocks);
  }
  pass_pieces(*pieces, config.stream);
}

void TaskScope::launch_graph(Graph& graph, const Stream& stream, const LaunchSite& site) {
  const std::uint64_t most = core_.options.most_blocks;
  if (most != 0 || memory_ != nullptr) {
    for (const GraphNode& node : graph.nodes()) {
      if (memory_ != nullptr && node.kernel) memory_->note_kernel(*node.kernel);
      if (most != 0 && node.grid.count() > most) refuse_bound(node.name, node.grid.count(), most);
    }
  }
  const WorkKey work{graph.key(), 0};
  if (task_.qos() == Qos::best_effort && !is_captured(stream)) {
    const auto pieces = cut(work, [&](const PieceRequest& request) {
      const double count = std::ceil(kMargin * request.launch_us / request.latency_us);
      return graph.cut(static_cast<std::size_t>(std::min(count, 1e6)), stream, site);
    });
    if (pieces != nullptr) return pass_pieces(*pieces, stream);
  }
  pass(work, stream, [&] { graph.launch(stream, site); });
}

/// Notes streams beside the task's own.
void TaskScope::count(const Stream& stream) {
  if (stream.handle() == stream_.handle()) [[likely]] {
    task_.launches_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (is_captured(stream)) return;
  task_.launches_.fetch_add(1, std::memory_order_relaxed);
  const auto is_same = [&](const Stream& other) { return other.handle() == stream.handle(); };
  if (std::any_of(others_.begin(), others_.end(), is_same)) return;
  is_on_legacy_ = is_on_legacy_ || stream.handle() == nullptr;
  others_.push_back(stream ? stream : Stream::legacy(core_.device));
}

void TaskScope::join() {
  if (is_on_legacy_) {
    log(LogLevel::warning,
        "{} launches on the legacy stream of {}: it waits for the work of other streams, and they "
        "for it. Launch on the current stream, or on one of your own",
        task_.label(), core_.device.identify());
  }
  for (const Stream& other : others_) stream_.wait(other.record());
  others_.clear();
}

}  // namespace kernwright::schedule
