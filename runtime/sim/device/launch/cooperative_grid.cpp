// Runs the blocks of a cooperative launch side by side.
#include "sim/check/checked_launch.h"
#include "sim/device/launch/cluster_runner.h"
#include "sim/device/launch/grid.h"
#include "sim/device/launch/print.h"
#include "sim/device/launch/thread_pool.h"
#include "sim/exec/warp/access_log.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>

namespace kernwright::sim {
namespace {

/// What the cooperative groups headers expect behind %envreg1 and %envreg2: the size of the whole
/// and the barrier's counter, two words of 32 bits. The rest is room to grow.
constexpr std::uint32_t kWorkspaceBytes = 256;

class Workspace {
 public:
  explicit Workspace(Memory& memory) : memory_(memory) {
    const auto address =
        memory.allocate(kWorkspaceBytes, AllocationKind::device, "workspace of a cooperative grid");
    if (!address) throw std::bad_alloc();
    address_ = *address;
    std::memcpy(host_pointer(address_), &kWorkspaceBytes, sizeof kWorkspaceBytes);
  }
  ~Workspace() { memory_.free(address_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  std::uint64_t address() const noexcept { return address_; }

 private:
  Memory& memory_;
  std::uint64_t address_ = 0;
};

/// Each worker takes a new cluster whenever all of its own ran for a round. So the grid is complete
/// even if fewer threads run than were asked for. Without clusters each block is one.
class CooperativeGrid {
 public:
  CooperativeGrid(const LaunchContext& launch, int width)
      : launch_(launch),
        clusters_(cluster_count(launch)),
        width_(static_cast<int>(std::min<std::uint64_t>(clusters_, static_cast<unsigned>(width)))),
        prints_(static_cast<std::size_t>(width_)),
        logs_(launch.accesses == nullptr ? 0 : static_cast<std::size_t>(width_)) {}

  GridResult run() {
    ThreadPool::get().run(
        width_, [this](int worker) { serve(worker); }, [this] { look(launch_); });
    if (failure_) std::rethrow_exception(failure_);
    for (const AccessLog& log : logs_) launch_.accesses->merge(log);
    GridResult result;
    result.fault = std::move(fault_);
    result.printed = join(prints_);
    return result;
  }

 private:
  using Residents = std::vector<std::unique_ptr<ClusterRunner>>;

  void serve(int worker) noexcept try {
    const auto slot = static_cast<std::size_t>(worker);
    LaunchContext launch = launch_;
    launch.print = PrintBuffer::append;
    launch.print_sink = &prints_[slot];
    if (!logs_.empty()) launch.accesses = &logs_[slot];
    Residents residents;
    while (!stopped_) {
      take_cluster(launch, slot, residents);
      if (residents.empty()) return;
      for (auto& runner : residents) {
        const Progress progress = runner->advance();
        if (progress == Progress::faulted) report(runner->fault());
        if (progress == Progress::done) runner = nullptr;
        if (stopped_) return;
      }
      std::erase(residents, nullptr);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    stopped_ = true;
  }

  void take_cluster(const LaunchContext& launch, std::size_t slot, Residents& residents) {
    const std::uint64_t next = next_.fetch_add(1, std::memory_order_relaxed);
    if (next >= clusters_) return;
    residents.push_back(
        std::make_unique<ClusterRunner>(launch, prints_[slot], static_cast<std::uint32_t>(slot)));
    residents.back()->start(next);
  }

  void report(const Fault& fault) {
    const std::lock_guard lock(mutex_);
    if (!fault_) fault_ = fault;
    stopped_ = true;
  }

  const LaunchContext& launch_;
  const std::uint64_t clusters_;
  const int width_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;  // guards fault_ and failure_
  std::optional<Fault> fault_;
  std::exception_ptr failure_;
  std::vector<PrintBuffer> prints_;
  std::vector<AccessLog> logs_;
};

}  // namespace

GridResult run_cooperative_grid(const LaunchContext& launch, int width) {
  const Workspace workspace(*launch.memory);
  LaunchContext request = launch;
  AccessLog touched;
  request.grid_workspace = workspace.address();
  if (launch.accesses != nullptr) request.accesses = &touched;
  const std::uint64_t seed = launch.checks == nullptr ? 0 : launch.checks->seed;
  GridResult result = seed != 0 ? run_scheduled_grid(request, seed, true)
                                : CooperativeGrid(request, std::max(1, width)).run();
  if (launch.accesses != nullptr) {
    touched.drop(workspace.address(), kWorkspaceBytes);
    launch.accesses->merge(touched);
  }
  return result;
}

}  // namespace kernwright::sim
