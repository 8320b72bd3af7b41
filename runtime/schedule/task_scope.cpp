// Launches of a task.
#include "schedule/task_scope.h"

#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "core/graph/graph.h"
#include "core/launch/launch_pause.h"
#include "core/partition.h"
#include "memory/memory_resource.h"
#include "schedule/precise_sleep.h"

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
  return find_capture(core_.device, stream.handle()) != nullptr;
}

void TaskScope::refuse_cancelled() const {
  if (task_.cancelled_.load(std::memory_order_relaxed)) [[unlikely]] {
    std::rethrow_exception(cancelled_in_work(task_));
  }
}

template <typename Queue>
void TaskScope::pass(const WorkKey& work, const Stream& stream, const Queue& queue) {
  refuse_cancelled();
  const bool is_best_effort = task_.qos() == Qos::best_effort;
  const bool has_share = task_.tenant_->request().has_value();
  if ((!is_best_effort && !has_share) || is_captured(stream)) {
    queue();
    return count(stream);
  }
  pass_paced({pointer_, task_.tenant_, is_best_effort, has_share, work}, stream, queue);
}

template <typename Queue>
Pacer::Number TaskScope::pass_paced(PacedLaunch launch, const Stream& stream, const Queue& queue) {
  task_.is_paced_ = true;
  const Pacer::Number number = core_.enter(std::move(launch));
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
  return number;
}

void TaskScope::pass_pieces(LaunchPieces& pieces, const Stream& stream) {
  const LaunchPause paused;  // one for all: else each piece waits for an interpreter's lock
  if (pieces.yields_until() != 0) return pass_yielding(pieces, stream);
  while (pieces.left() != 0) pass(pieces.next(), stream, [&] { pieces.queue(); });
}

YieldWords& TaskScope::take_words() {
  turn_ = 1 - turn_;
  std::optional<YieldWords>& words = words_[turn_];
  if (!words)
    words.emplace(stream_, default_resource(core_.device),
                  *core_.orders_);  // not the task's memory
  words->reset();
  return *words;
}

/// Arrays behind the arguments live until the launch returns, and what the task launches next goes
/// behind all of it: so this returns when the last part is on the device and no order reaches it.
void TaskScope::pass_yielding(LaunchPieces& piece, const Stream& stream) {
  YieldWords& words = *words_[turn_];
  bool is_rest = false;
  do {
    refuse_cancelled();
    words.clear();
    const Pacer::Number number =
        pass_paced({pointer_, task_.tenant_, true, task_.tenant_->request().has_value(),
                    piece.next(), is_rest, words.told(), words.addresses().order},
                   stream, [&] {
                     piece.queue();
                     words.end();
                     task_.has_yielded_ = false;
                   });
    wait_yielding(number);
    is_rest = words.has_yielded(piece.yields_until());
    task_.has_yielded_ = is_rest;
    if (is_rest) ++task_.preemptions_;
  } while (is_rest);
}

void TaskScope::wait_yielding(Pacer::Number number) {
  const LaunchPause paused;
  const PreciseSleep precise;
  try {
    for (unsigned round = 0;; ++round) {
      {
        const SchedulerCore::Lock lock(core_.mutex_);
        if (task_.cancelled_.load(std::memory_order_relaxed)) core_.pacer_.stop(number);
        if (core_.pacer_.try_leave(number, core_.clock->now())) return;
      }
      core_.send_orders();                          // to itself, where the task was cancelled
      if (!core_.options.background) core_.reap();  // no thread sees the ends of tasks meanwhile
      if (!core_.measure()) precise.pause(round);
    }
  } catch (...) {
    const SchedulerCore::Lock lock(core_.mutex_);
    core_.pacer_.withdraw(number);
    throw;
  }
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
                      .multiprocessors = core_.multiprocessors(),
                      .spare = wanted->spare};
}

std::unique_ptr<LaunchPieces> TaskScope::note_cut(const WorkKey& work, const PieceRequest& request,
                                                  std::unique_ptr<LaunchPieces> pieces) {
  const SchedulerCore::Lock lock(core_.mutex_);
  if (pieces == nullptr) {
    core_.pacer_.note_cut(work, {}, 0);
  } else {
    // Pieces of a graph differ, so none tells the cost of all. A launch that yields is whole: what
    // one alone took on a cool device must not end that.
    const bool is_judged = work.second != 0 && pieces->yields_until() == 0;
    // Multiprocessors that pieces leave to others are wanted, and no cost of the cut.
    const double used = static_cast<double>(request.used_multiprocessors()) /
                        static_cast<double>(request.multiprocessors);
    core_.pacer_.note_cut(work, is_judged ? pieces->next() : WorkKey(), pieces->amount() * used);
  }
  return pieces;
}

template <typename Cutter>
std::unique_ptr<LaunchPieces> TaskScope::cut(const WorkKey& work, const Cutter& cutter) {
  const std::optional<PieceRequest> request = find_cut(work);
  return request ? note_cut(work, *request, cutter(*request)) : nullptr;
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
    const auto pieces = cut(work, [&](PieceRequest request) {
      const bool stays = config.most_blocks > config.grid.count();  // each block, for many tiles
      if (core_.options.yields && stays && config.stream.handle() == stream_.handle()) {
        request.words = take_words().addresses();
      }
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
