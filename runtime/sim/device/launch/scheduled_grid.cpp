// Runs the blocks of a launch in an order chosen by a seed.
#include "sim/device/launch/cluster_runner.h"
#include "sim/device/launch/grid.h"
#include "sim/device/launch/print.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace kernwright::sim {
namespace {

/// Clusters (or single blocks) in flight at a time in a non-cooperative launch.
constexpr std::size_t kResidents = 4;

std::uint64_t count_blocks(const LaunchContext& launch) {
  return std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
}

/// One thread, so that the same seed always gives the same order.
class ScheduledGrid {
 public:
  ScheduledGrid(const LaunchContext& launch, std::uint64_t seed, bool whole,
                std::span<const std::uint32_t> processors)
      : launch_(launch),
        processors_(processors),
        random_(seed),
        order_(cluster_count(launch)),
        most_(whole ? order_.size() : kResidents),
        blocks_each_(count_blocks(launch) / order_.size()),
        prints_(1) {
    std::iota(order_.begin(), order_.end(), 0u);
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[pick(i)]);
    launch_.print = PrintBuffer::append;
    launch_.print_sink = prints_.data();
  }

  GridResult run() {
    GridResult result;
    while (fill()) {
      if (is_stuck()) residents_.front()->give_up_waiting();
      const std::size_t which = pick(residents_.size());
      auto& runner = residents_[which];
      const Progress progress = runner->advance();
      if (progress == Progress::running) continue;
      if (progress == Progress::faulted) {
        result.fault = runner->fault();
        break;
      }
      idle_.push_back(std::move(runner));
      residents_.erase(residents_.begin() + static_cast<std::ptrdiff_t>(which));
    }
    residents_.clear();
    idle_.clear();
    result.printed = join(prints_);
    return result;
  }

 private:
  std::size_t pick(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  /// Whether one more may begin: those that seem to wait, perhaps for it, do not count. Then the
  /// first of the grid is next, as on a GPU.
  bool has_room() {
    if (next_ == order_.size()) return false;
    if (residents_.size() < most_) return true;
    const auto busy = [](const auto& runner) { return !runner->seems_to_wait(); };
    if (residents_.size() * blocks_each_ >= launch_.residents) return false;
    if (std::any_of(residents_.begin(), residents_.end(), busy)) return false;
    const auto rest = order_.begin() + static_cast<std::ptrdiff_t>(next_);
    std::iter_swap(rest, std::min_element(rest, order_.end()));
    return true;
  }

  /// All possible ones have begun, and have waited for longer than a warp may run.
  bool is_stuck() const {
    std::uint64_t waited = 0;
    for (const auto& runner : residents_) {
      if (!runner->seems_to_wait()) return false;
      waited += runner->waited_instructions();
    }
    return launch_.instruction_budget != 0 && waited > launch_.instruction_budget;
  }

  /// False when all have ended.
  bool fill() {
    while (has_room()) {
      std::unique_ptr<ClusterRunner> runner;
      if (idle_.empty()) {
        runner = std::make_unique<ClusterRunner>(launch_, prints_[0], processors_);
      } else {
        runner = std::move(idle_.back());
        idle_.pop_back();
      }
      runner->start(order_[next_++]);
      residents_.push_back(std::move(runner));
    }
    return !residents_.empty();
  }

  LaunchContext launch_;
  const std::span<const std::uint32_t> processors_;
  std::mt19937_64 random_;
  std::vector<std::uint32_t> order_;
  const std::size_t most_;
  const std::uint64_t blocks_each_;  ///< of a cluster
  std::vector<PrintBuffer> prints_;
  std::vector<std::unique_ptr<ClusterRunner>> residents_;
  std::vector<std::unique_ptr<ClusterRunner>> idle_;
  std::size_t next_ = 0;
};

}  // namespace

GridResult run_scheduled_grid(const LaunchContext& launch, std::uint64_t seed, bool whole,
                              std::span<const std::uint32_t> processors) {
  return ScheduledGrid(launch, seed, whole, processors).run();
}

}  // namespace kernwright::sim
