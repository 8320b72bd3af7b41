// Blocks one after the other, and beside each other where they wait for those behind them.
#include "sim/device/launch/block_set.h"

#include <algorithm>
#include <utility>

namespace kernwright::sim {

BlockSet::BlockSet(const LaunchContext& launch, PrintBuffer& print,
                   std::atomic<std::uint64_t>& aside, std::span<const std::uint32_t> processors)
    : launch_(launch),
      print_(print),
      all_aside_(aside),
      processors_(processors),
      blocks_each_(std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2] /
                   cluster_count(launch)) {
  idle_.push_back(std::make_unique<ClusterRunner>(launch, print, processors));
}

bool BlockSet::fail(Member&& member) {
  failed_ = std::move(member);
  return false;
}

template <typename F>
void BlockSet::drop_if(F is_over) {
  all_aside_ -= std::erase_if(aside_, is_over) * blocks_each_;
}

std::unique_ptr<ClusterRunner> BlockSet::take_runner() {
  if (idle_.empty()) return std::make_unique<ClusterRunner>(launch_, print_, processors_);
  std::unique_ptr<ClusterRunner> runner = std::move(idle_.back());
  idle_.pop_back();
  return runner;
}

void BlockSet::begin(std::uint64_t cluster) {
  aside_.push_back({take_runner(), cluster});
  aside_.back().runner->start(cluster);
  all_aside_ += blocks_each_;
}

bool BlockSet::run(std::uint64_t cluster) {
  if (idle_.empty()) idle_.push_back(std::make_unique<ClusterRunner>(launch_, print_, processors_));
  ClusterRunner& runner = *idle_.back();
  runner.start(cluster);
  Progress progress = Progress::running;
  while (progress == Progress::running && !runner.seems_to_wait()) progress = runner.advance();
  if (progress == Progress::done) return aside_.empty() || run_aside(false);
  Member member{std::move(idle_.back()), cluster};
  idle_.pop_back();
  if (progress == Progress::faulted) return fail(std::move(member));
  aside_.push_back(std::move(member));
  all_aside_ += blocks_each_;
  bool fine = run_aside(false);
  while (fine && !aside_.empty() && all_aside_ >= launch_.residents) fine = run_aside(true);
  return fine;
}

bool BlockSet::run_aside(bool is_complete) {
  std::uint64_t waited = 0;
  for (Member& member : aside_) {
    const Progress progress = member.runner->advance();
    if (progress == Progress::faulted) return fail(std::move(member));
    waited += member.runner->waited_instructions();
    if (progress == Progress::done) idle_.push_back(std::move(member.runner));
  }
  drop_if([](const Member& member) { return member.runner == nullptr; });
  const std::uint64_t budget = launch_.instruction_budget;
  if (is_complete && budget != 0 && waited > budget && is_stuck()) {
    aside_.front().runner->give_up_waiting();
  }
  return true;
}

bool BlockSet::is_stuck() const noexcept {
  return std::all_of(aside_.begin(), aside_.end(),
                     [](const Member& member) { return member.runner->seems_to_wait(); });
}

void BlockSet::drop_behind(std::uint64_t cluster) {
  drop_if([cluster](const Member& member) { return member.cluster > cluster; });
}

}  // namespace kernwright::sim
