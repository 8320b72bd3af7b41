// Runs all blocks of a launch over host threads.
#include "sim/device/launch/grid.h"

#include "sim/device/launch/block_set.h"
#include "sim/device/launch/print.h"
#include "sim/device/launch/thread_pool.h"
#include "sim/exec/warp/access_log.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

namespace kernwright::sim {
namespace {

constexpr std::uint64_t kNoFault = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kLargestChunk = 64;
/// Many, because finished workers wait for the last chunk.
constexpr std::uint64_t kChunksPerWorker = 32;

class Grid {
 public:
  Grid(const LaunchContext& launch, int width, std::span<const std::uint32_t> processors,
       bool together)
      : launch_(launch),
        processors_(processors),
        together_(together),
        clusters_(cluster_count(launch)),
        width_(static_cast<int>(std::min<std::uint64_t>(clusters_, static_cast<unsigned>(width)))),
        chunk_(std::clamp<std::uint64_t>(
            clusters_ / (kChunksPerWorker * static_cast<unsigned>(width_)), 1, kLargestChunk)),
        prints_(static_cast<std::size_t>(width_)),
        logs_(launch.accesses == nullptr ? 0 : static_cast<std::size_t>(width_)) {}

  GridResult run() {
    ThreadPool::get().run(
        width_, [this](int worker) { serve(worker); }, [this] { look(launch_); });
    if (failure_) std::rethrow_exception(failure_);
    for (const AccessLog& log : logs_) launch_.accesses->merge(log);
    GridResult result;
    if (faulty_ != kNoFault) result.fault = std::move(fault_);
    result.printed = join(prints_);
    return result;
  }

 private:
  void serve(int worker) noexcept try {
    LaunchContext launch = launch_;
    PrintBuffer& print = prints_[static_cast<std::size_t>(worker)];
    launch.print = PrintBuffer::append;
    launch.print_sink = &print;
    if (!logs_.empty()) launch.accesses = &logs_[static_cast<std::size_t>(worker)];
    BlockSet blocks(launch, print, aside_, processors_);
    const bool fine = together_ ? serve_together(blocks) : serve_in_order(blocks);
    if (!fine) report(blocks.faulty_cluster(), blocks.fault());
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    faulty_ = 0;  // the others stop
  }

  /// False after a finding of the set.
  bool serve_in_order(BlockSet& blocks) {
    while (true) {
      const std::uint64_t first = next_.fetch_add(chunk_, std::memory_order_relaxed);
      const std::uint64_t end = std::min(clusters_, first + chunk_);
      if (first >= clusters_ || first > faulty_.load(std::memory_order_relaxed)) break;
      for (std::uint64_t next = first; next < end; ++next) {
        if (next > faulty_.load(std::memory_order_relaxed)) break;
        if (!blocks.run(next)) return false;
      }
    }
    while (blocks.is_waiting()) {
      const std::uint64_t faulty = faulty_.load(std::memory_order_relaxed);
      if (faulty != kNoFault && blocks.is_stuck()) break;  // for what does not begin any more
      blocks.drop_behind(faulty);
      if (!blocks.finish_round()) return false;
    }
    return true;
  }

  /// The same of blocks that are all in flight: one more begins whenever all of the set ran for a
  /// round. So the grid is complete even if fewer threads run than were asked for.
  bool serve_together(BlockSet& blocks) {
    while (faulty_.load(std::memory_order_relaxed) == kNoFault) {
      const std::uint64_t next = next_.fetch_add(1, std::memory_order_relaxed);
      if (next < clusters_) blocks.begin(next);
      if (!blocks.is_waiting()) break;
      if (!blocks.run_round()) return false;
    }
    return true;
  }

  void report(std::uint64_t cluster, const Fault& fault) {
    const std::lock_guard lock(mutex_);
    if (cluster >= faulty_) return;
    faulty_ = cluster;
    fault_ = fault;
  }

  const LaunchContext& launch_;
  const std::span<const std::uint32_t> processors_;
  const bool together_;
  const std::uint64_t clusters_;  // each block is one where there are none
  const int width_;
  const std::uint64_t chunk_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> aside_{0};  // blocks that wait, of all workers
  std::atomic<std::uint64_t> faulty_{kNoFault};
  std::mutex mutex_;  // guards fault_ and failure_
  Fault fault_;
  std::exception_ptr failure_;
  std::vector<PrintBuffer> prints_;
  std::vector<AccessLog> logs_;  // empty if accesses are not asked for
};

}  // namespace

GridResult run_grid(const LaunchContext& launch, int width,
                    std::span<const std::uint32_t> processors) {
  return Grid(launch, std::max(1, width), processors, false).run();
}

GridResult run_grid_together(const LaunchContext& launch, int width,
                             std::span<const std::uint32_t> processors) {
  return Grid(launch, std::max(1, width), processors, true).run();
}

}  // namespace kernwright::sim
