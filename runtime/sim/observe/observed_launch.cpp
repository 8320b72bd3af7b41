// The counts of a launch, apart for each host thread.
#include "sim/observe/observed_launch.h"

#include "sim/observe/observer.h"

namespace kernwright::sim {

std::unique_ptr<Watcher> ObservedLaunch::watch(const WatchedBlocks&) {
  return std::make_unique<Observer>(*this);
}

LineCounts* ObservedLaunch::thread_counts() {
  if (!counts) return nullptr;
  const std::lock_guard lock(mutex_);
  std::vector<LineCounts>& line_counts = by_thread_[std::this_thread::get_id()];
  if (line_counts.empty()) line_counts.resize(program.ops.size());
  return line_counts.data();
}

std::vector<LineCounts> ObservedLaunch::total() const {
  std::vector<LineCounts> sum(program.ops.size());
  for (const auto& [thread, line_counts] : by_thread_) {
    for (std::size_t i = 0; i < line_counts.size(); ++i) sum[i] += line_counts[i];
  }
  return sum;
}

}  // namespace kernwright::sim
