// Runs the blocks of one cluster side by side on one host thread.
#include "sim/device/launch/cluster_runner.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

std::array<std::uint32_t, 3> cluster_shape(const LaunchContext& launch) noexcept {
  std::array<std::uint32_t, 3> shape = launch.cluster;
  for (std::uint32_t& extent : shape) extent = std::max(extent, 1u);
  return shape;
}

}  // namespace

std::uint64_t cluster_count(const LaunchContext& launch) noexcept {
  const auto shape = cluster_shape(launch);
  std::uint64_t count = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) count *= launch.grid[axis] / shape[axis];
  return count;
}

ClusterRunner::ClusterRunner(const LaunchContext& launch, PrintBuffer& print,
                             std::span<const std::uint32_t> processors)
    : shape_(cluster_shape(launch)), grid_(launch.grid), print_(print) {
  const std::uint32_t blocks = shape_[0] * shape_[1] * shape_[2];
  members_.resize(blocks);
  for (std::uint32_t rank = 0; rank < blocks; ++rank) {
    members_[rank].runner = std::make_unique<BlockRunner>(launch, processors);
    members_[rank].runner->join(cluster_, rank);
  }
}

void ClusterRunner::start(std::uint64_t cluster) {
  const std::uint64_t x = grid_[0] / shape_[0], y = grid_[1] / shape_[1];
  std::array<std::uint64_t, 3> place{cluster, 0, 0};
  if (cluster >= x) place = {cluster % x, cluster / x % y, cluster / x / y};
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    std::array<std::uint32_t, 3> inside{};
    // Divisions take the time of some instructions of a block, and most clusters are one.
    if (members_.size() > 1)
      inside = {rank % shape_[0], rank / shape_[0] % shape_[1], rank / shape_[0] / shape_[1]};
    std::array<std::uint32_t, 3> block{};
    for (std::size_t axis = 0; axis < 3; ++axis)
      block[axis] = static_cast<std::uint32_t>(place[axis]) * shape_[axis] + inside[axis];
    Member& member = members_[rank];
    member.block =
        block[0] + std::uint64_t{grid_[0]} * (block[1] + std::uint64_t{grid_[1]} * block[2]);
    member.progress = Progress::running;
    member.runner->start(block);
  }
}

Progress ClusterRunner::advance() {
  if (members_.size() == 1) {  // it never says that it waits for others
    Member& only = members_.front();
    print_.begin_block(only.block);
    return only.progress = only.runner->advance();
  }
  bool ran = false, left = false;
  for (Member& member : members_) {
    if (member.progress == Progress::done) continue;
    print_.begin_block(member.block);
    member.progress = member.runner->advance();
    if (member.progress == Progress::faulted) return Progress::faulted;
    ran |= member.progress == Progress::running;
    left |= member.progress != Progress::done;
  }
  if (!left) return Progress::done;
  return ran ? Progress::running : relieve();
}

bool ClusterRunner::run(std::uint64_t cluster) {
  start(cluster);
  Progress progress = Progress::running;
  while (progress == Progress::running) progress = advance();
  return progress == Progress::done;
}

/// Some wait and nobody ran.
Progress ClusterRunner::relieve() {
  const auto waits = std::ranges::find(members_, Progress::waiting, &Member::progress);
  return waits == members_.end() ? Progress::running : waits->runner->relieve();
}

bool ClusterRunner::seems_to_wait() const noexcept {
  return std::all_of(members_.begin(), members_.end(), [](const Member& member) {
    return member.progress != Progress::running || member.runner->seems_to_wait();
  });
}

std::uint64_t ClusterRunner::waited_instructions() const noexcept {
  std::uint64_t sum = 0;
  for (const Member& member : members_) {
    if (member.progress == Progress::running) sum += member.runner->waited_instructions();
  }
  return sum;
}

void ClusterRunner::give_up_waiting() noexcept {
  for (Member& member : members_) member.runner->give_up_waiting();
}

const Fault& ClusterRunner::fault() const noexcept {
  for (const Member& member : members_) {
    if (member.runner->fault().kind != FaultKind::none) return member.runner->fault();
  }
  return members_.front().runner->fault();
}

}  // namespace kernwright::sim
