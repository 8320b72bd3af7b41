// Runs the blocks of a launch cluster by cluster.
#include "sim/device/cluster_runner.h"
#include "sim/device/grid.h"
#include "sim/device/print.h"
#include "sim/device/thread_pool.h"
#include "sim/exec/access_log.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>

namespace kernwright::sim {
namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

class ClusterGrid {
 public:
  ClusterGrid(const LaunchContext& launch, int width)
      : launch_(launch), count_(cluster_count(launch)) {
    width_ = static_cast<int>(std::min<std::uint64_t>(count_, static_cast<unsigned>(width)));
    prints_ = std::vector<PrintBuffer>(static_cast<std::size_t>(width_));
    if (launch.accesses != nullptr) logs_.resize(static_cast<std::size_t>(width_));
  }

  GridResult run() {
    ThreadPool::get().run(
        width_, [this](int worker) { serve(worker); }, [this] { look(launch_); });
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
    ClusterRunner runner(launch, print, static_cast<std::uint32_t>(worker));
    for (;;) {
      const std::uint64_t next = next_.fetch_add(1, std::memory_order_relaxed);
      if (next >= count_ || next > faulty_.load(std::memory_order_relaxed)) return;
      if (runner.run(next)) continue;
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
  const std::uint64_t count_;
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
