// Ticks, and the pasts carried from block to block by synchronisation variables.
#include "sim/check/checked_launch.h"

#include "sim/check/block_check.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace kernwright::sim {
namespace {

constexpr std::size_t kOwnerBytes = std::size_t{Ticks::kChunks} * sizeof(std::uint32_t);
/// A launch begins anew when fewer are left.
constexpr std::uint32_t kLowChunks = Ticks::kChunks / 4;

}  // namespace

Ticks::Ticks() : owners_(static_cast<std::uint32_t*>(lazy_zeros(kOwnerBytes))) {}

Ticks::~Ticks() { ::munmap(owners_, kOwnerBytes); }

std::uint32_t Ticks::begin_launch(bool* wrapped) {
  *wrapped = next_.load() > kChunks - kLowChunks;
  if (*wrapped) next_ = 1;
  return next_.load() << kChunkShift;
}

std::uint32_t Ticks::take(std::uint32_t block) noexcept {
  std::uint32_t chunk = next_.fetch_add(1, std::memory_order_relaxed);
  if (chunk >= kChunks) {
    next_.store(kChunks, std::memory_order_relaxed);
    chunk = kChunks - 1;
  }
  std::atomic_ref(owners_[chunk]).store(block, std::memory_order_relaxed);
  return chunk << kChunkShift;
}

CheckedLaunch::CheckedLaunch(const CheckedProgram& its_program, CheckSet its_checks,
                             GlobalShadow& its_shadow, Ticks& its_ticks, std::uint64_t its_seed,
                             int width)
    : LaunchWatcher(its_seed),
      program(its_program),
      checks(its_checks),
      alone(width <= 1 || its_seed != 0),
      shadow(its_shadow),
      ticks(its_ticks) {
  bool wrapped = false;
  first_tick = ticks.begin_launch(&wrapped);
  if (wrapped) shadow.clear_shadows();
}

std::unique_ptr<Watcher> CheckedLaunch::watch(const WatchedBlocks& blocks) {
  return std::make_unique<BlockCheck>(*this, blocks);
}

SharedPast CheckedLaunch::published(const Variable& variable) {
  const std::lock_guard lock(mutex_);
  const auto found = variables_.find(variable);
  return found == variables_.end() ? nullptr : found->second;
}

void CheckedLaunch::publish(const Variable& variable, const SharedPast& past) {
  const std::lock_guard lock(mutex_);
  SharedPast& there = variables_[variable];
  there = join(there, past);
}

void CheckedLaunch::collect(Found& found) {
  const std::lock_guard lock(mutex_);
  for (auto& [key, finding] : found) {
    const auto [known, is_new] = found_.try_emplace(key, finding);
    if (is_new) continue;
    const std::uint64_t count = known->second.count + finding.count;
    const Finding& other = known->second;
    const bool equal = finding.breadth == other.breadth;
    if (equal ? finding.fault.block < other.fault.block : finding.breadth > other.breadth)
      known->second = std::move(finding);
    known->second.count = count;
  }
}

std::vector<Finding> CheckedLaunch::take() {
  std::vector<Finding> all;
  for (auto& entry : found_) all.push_back(std::move(entry.second));
  found_.clear();
  const auto place = [](const Finding& finding) {
    return std::pair{finding.fault.ptx_line, finding.other ? finding.other->ptx_line : 0};
  };
  std::sort(all.begin(), all.end(),
            [&](const Finding& a, const Finding& b) { return place(a) < place(b); });
  return all;
}

}  // namespace kernwright::sim
