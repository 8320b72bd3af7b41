// Runs all blocks of a launch over host threads.
#include "sim/device/grid.h"

#include "sim/device/print.h"
#include "sim/device/thread_pool.h"
#include "sim/exec/access_log.h"
#include "sim/exec/block_runner.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kernwright::sim {
namespace {

constexpr std::uint64_t kNoBlock = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kLargestChunk = 64;
constexpr std::uint64_t kChunksPerWorker = 8;

/// Runs blocks one after the other. One that seems to wait for others (a flag of a block further
/// on, a barrier of the grid made by hand) is put aside while the next ones begin, as many as the
/// device holds at a time, and has a turn after each. Not thread-safe.
class BlockCrew {
 public:
  /// `launch` and `print` outlive it. `sm` is what %smid reads.
  BlockCrew(const LaunchContext& launch, PrintBuffer& print, std::uint32_t sm);

  /// Runs the block to its end or puts it aside. False after a finding.
  bool run(std::uint64_t block, std::array<std::uint32_t, 3> place);
  /// Blocks were put aside and have not ended.
  bool is_waiting() const noexcept { return !aside_.empty(); }
  /// Gives each of those a turn, when no more blocks begin. False after a finding; one is made
  /// where all of them have only waited for longer than a warp may run.
  bool finish_turn() { return turn(true); }
  /// All of those seem to wait.
  bool is_stuck() const noexcept;
  /// Ends those behind `block` where they are.
  void drop_behind(std::uint64_t block);

  /// After a finding.
  const FaultReport& fault() const noexcept { return failed_.runner->fault(); }
  std::uint64_t faulty_block() const noexcept { return failed_.block; }

 private:
  struct Member {
    std::unique_ptr<BlockRunner> runner;
    std::uint64_t block = 0;
  };
  bool turn(bool is_complete);
  bool fail(Member&& member);

  const LaunchContext& launch_;
  PrintBuffer& print_;
  std::uint32_t sm_;
  std::vector<Member> aside_;  ///< in the order in which they began
  std::vector<std::unique_ptr<BlockRunner>> idle_;
  Member failed_;
};

BlockCrew::BlockCrew(const LaunchContext& launch, PrintBuffer& print, std::uint32_t sm)
    : launch_(launch), print_(print), sm_(sm) {
  idle_.push_back(std::make_unique<BlockRunner>(launch, sm));
}

bool BlockCrew::fail(Member&& member) {
  failed_ = std::move(member);
  return false;
}

bool BlockCrew::run(std::uint64_t block, std::array<std::uint32_t, 3> place) {
  if (idle_.empty()) idle_.push_back(std::make_unique<BlockRunner>(launch_, sm_));
  BlockRunner& runner = *idle_.back();
  print_.begin_block(block);
  runner.start(place);
  Progress progress = Progress::running;
  while (progress == Progress::running && !runner.seems_to_wait()) progress = runner.advance();
  if (progress == Progress::done) return aside_.empty() || turn(false);
  Member member{std::move(idle_.back()), block};
  idle_.pop_back();
  if (progress == Progress::faulted) return fail(std::move(member));
  aside_.push_back(std::move(member));
  bool fine = turn(false);
  while (fine && aside_.size() >= launch_.residents) fine = turn(true);
  return fine;
}

bool BlockCrew::turn(bool is_complete) {
  std::uint64_t waited = 0;
  for (Member& member : aside_) {
    print_.begin_block(member.block);
    const Progress progress = member.runner->advance();
    if (progress == Progress::faulted) return fail(std::move(member));
    waited += member.runner->waited_instructions();
    if (progress == Progress::done) idle_.push_back(std::move(member.runner));
  }
  std::erase_if(aside_, [](const Member& member) { return member.runner == nullptr; });
  const std::uint64_t budget = launch_.instruction_budget;
  if (is_complete && budget != 0 && waited > budget && is_stuck()) {
    aside_.front().runner->give_up_waiting();
  }
  return true;
}

bool BlockCrew::is_stuck() const noexcept {
  return std::all_of(aside_.begin(), aside_.end(),
                     [](const Member& member) { return member.runner->seems_to_wait(); });
}

void BlockCrew::drop_behind(std::uint64_t block) {
  std::erase_if(aside_, [block](const Member& member) { return member.block > block; });
}

class Grid {
 public:
  Grid(const LaunchContext& launch, int width)
      : launch_(launch),
        blocks_(std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2]),
        width_(static_cast<int>(std::min<std::uint64_t>(blocks_, static_cast<unsigned>(width)))),
        chunk_(std::clamp<std::uint64_t>(
            blocks_ / (kChunksPerWorker * static_cast<unsigned>(width_)), 1, kLargestChunk)),
        prints_(static_cast<std::size_t>(width_)),
        logs_(launch.accesses == nullptr ? 0 : static_cast<std::size_t>(width_)) {}

  GridResult run() {
    ThreadPool::get().run(
        width_, [this](int worker) { serve(worker); }, [this] { look(launch_); });
    if (failure_) std::rethrow_exception(failure_);
    for (const AccessLog& log : logs_) launch_.accesses->merge(log);
    GridResult result;
    if (faulty_block_ != kNoBlock) result.fault = std::move(fault_);
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
    BlockCrew crew(launch, print, static_cast<std::uint32_t>(worker));
    if (!serve(crew)) report(crew.faulty_block(), crew.fault());
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    faulty_block_ = 0;  // the others stop
  }

  /// False after a finding of the crew.
  bool serve(BlockCrew& crew) {
    while (true) {
      const std::uint64_t first = next_.fetch_add(chunk_, std::memory_order_relaxed);
      const std::uint64_t end = std::min(blocks_, first + chunk_);
      if (first >= blocks_ || first > faulty_block_.load(std::memory_order_relaxed)) break;
      for (std::uint64_t block = first; block < end; ++block) {
        if (block > faulty_block_.load(std::memory_order_relaxed)) break;
        if (!crew.run(block, coordinates(block))) return false;
      }
    }
    while (crew.is_waiting()) {
      const std::uint64_t faulty = faulty_block_.load(std::memory_order_relaxed);
      if (faulty != kNoBlock && crew.is_stuck()) break;  // for blocks that do not begin any more
      crew.drop_behind(faulty);
      if (!crew.finish_turn()) return false;
    }
    return true;
  }

  std::array<std::uint32_t, 3> coordinates(std::uint64_t block) const noexcept {
    const std::uint64_t x = launch_.grid[0], y = launch_.grid[1];
    return {static_cast<std::uint32_t>(block % x), static_cast<std::uint32_t>(block / x % y),
            static_cast<std::uint32_t>(block / x / y)};
  }

  void report(std::uint64_t block, const FaultReport& fault) {
    const std::lock_guard lock(mutex_);
    if (block >= faulty_block_) return;
    faulty_block_ = block;
    fault_ = fault;
  }

  const LaunchContext& launch_;
  const std::uint64_t blocks_;
  const int width_;
  const std::uint64_t chunk_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> faulty_block_{kNoBlock};
  std::mutex mutex_;  // guards fault_ and failure_
  FaultReport fault_;
  std::exception_ptr failure_;
  std::vector<PrintBuffer> prints_;
  std::vector<AccessLog> logs_;  // empty when nobody asks
};

}  // namespace

GridResult run_grid(const LaunchContext& launch, int width) {
  return Grid(launch, std::max(1, width)).run();
}

}  // namespace kernwright::sim
