// Runs the blocks of a launch cluster by cluster.
#include "sim/device/grid.h"
#include "sim/device/print.h"
#include "sim/device/thread_pool.h"
#include "sim/exec/access_log.h"
#include "sim/exec/block_runner.h"
#include "sim/exec/cluster.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>

namespace kernwright::sim {
namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

/// The blocks of one cluster at a time, on one host thread, in turn.
class ClusterRunner {
 public:
  ClusterRunner(const LaunchContext& launch, std::uint32_t sm) : launch_(launch) {
    const std::uint32_t blocks = launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
    for (std::uint32_t rank = 0; rank < blocks; ++rank) {
      runners_.push_back(std::make_unique<BlockRunner>(launch, sm));
      runners_.back()->join(cluster_, rank);
    }
    progress_.resize(blocks);
  }

  /// Runs the cluster at `place`, in clusters. `begin_block` is told of each turn's block. False
  /// after a finding.
  template <typename F>
  bool run(std::array<std::uint32_t, 3> place, F begin_block) {
    for (std::uint32_t rank = 0; rank < runners_.size(); ++rank) {
      runners_[rank]->start(block_of(place, rank));
      progress_[rank] = Progress::running;
    }
    for (;;) {
      bool ran = false, left = false;
      for (std::uint32_t rank = 0; rank < runners_.size(); ++rank) {
        if (progress_[rank] == Progress::done) continue;
        begin_block(linear(block_of(place, rank)));
        progress_[rank] = runners_[rank]->advance();
        if (progress_[rank] == Progress::faulted) return false;
        ran |= progress_[rank] == Progress::running;
        left |= progress_[rank] != Progress::done;
      }
      if (!left) return true;
      if (!ran && !relieve()) return false;
    }
  }

  const FaultReport& fault() const {
    const FaultReport* found = &runners_.front()->fault();
    for (const auto& runner : runners_) {
      if (runner->fault().kind != FaultKind::none) return runner->fault();
    }
    return *found;
  }

 private:
  bool relieve() {
    for (std::uint32_t rank = 0; rank < runners_.size(); ++rank) {
      if (progress_[rank] == Progress::waiting)
        return runners_[rank]->relieve() == Progress::running;
    }
    return true;
  }

  std::array<std::uint32_t, 3> block_of(const std::array<std::uint32_t, 3>& place,
                                        std::uint32_t rank) const {
    const auto& shape = launch_.cluster;
    return {place[0] * shape[0] + rank % shape[0], place[1] * shape[1] + rank / shape[0] % shape[1],
            place[2] * shape[2] + rank / shape[0] / shape[1]};
  }

  std::uint64_t linear(const std::array<std::uint32_t, 3>& block) const {
    const std::uint64_t x = launch_.grid[0], y = launch_.grid[1];
    return block[0] + x * (block[1] + y * block[2]);
  }

  const LaunchContext& launch_;
  Cluster cluster_;
  std::vector<std::unique_ptr<BlockRunner>> runners_;
  std::vector<Progress> progress_;
};

class ClusterGrid {
 public:
  ClusterGrid(const LaunchContext& launch, int width) : launch_(launch) {
    for (std::size_t i = 0; i < 3; ++i) clusters_[i] = launch.grid[i] / launch.cluster[i];
    count_ = std::uint64_t{clusters_[0]} * clusters_[1] * clusters_[2];
    width_ = static_cast<int>(std::min<std::uint64_t>(count_, static_cast<unsigned>(width)));
    prints_ = std::vector<PrintBuffer>(static_cast<std::size_t>(width_));
    if (launch.accesses != nullptr) logs_.resize(static_cast<std::size_t>(width_));
  }

  GridResult run() {
    ThreadPool::get().run(width_, [this](int worker) { serve(worker); });
    if (failure_) std::rethrow_exception(failure_);
    for (const AccessLog& log : logs_) launch_.accesses->merge(log);
    GridResult result;
    if (faulty_ != kNone) result.fault = std::move(fault_);
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
    ClusterRunner runner(launch, static_cast<std::uint32_t>(worker));
    for (;;) {
      const std::uint64_t next = next_.fetch_add(1, std::memory_order_relaxed);
      if (next >= count_ || next > faulty_.load(std::memory_order_relaxed)) return;
      const std::uint64_t x = clusters_[0], y = clusters_[1];
      if (runner.run(
              {static_cast<std::uint32_t>(next % x), static_cast<std::uint32_t>(next / x % y),
               static_cast<std::uint32_t>(next / x / y)},
              [&](std::uint64_t block) { print.begin_block(block); }))
        continue;
      const std::lock_guard lock(mutex_);
      if (next < faulty_) {
        faulty_ = next;
        fault_ = runner.fault();
      }
      return;
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    faulty_ = 0;  // the others stop
  }

  const LaunchContext& launch_;
  std::array<std::uint32_t, 3> clusters_{};
  std::uint64_t count_ = 0;
  int width_ = 1;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> faulty_{kNone};
  std::mutex mutex_;  // guards fault_ and failure_
  FaultReport fault_;
  std::exception_ptr failure_;
  std::vector<PrintBuffer> prints_;
  std::vector<AccessLog> logs_;  // empty when nobody asks
};

}  // namespace

GridResult run_cluster_grid(const LaunchContext& launch, int width) {
  return ClusterGrid(launch, std::max(1, width)).run();
}

}  // namespace kernwright::sim
