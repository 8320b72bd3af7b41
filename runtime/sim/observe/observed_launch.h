// One watched launch: the common data of its blocks.
#pragma once

#include "sim/exec/watcher.h"
#include "sim/line_profile.h"
#include "sim/observe/observed_program.h"

#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace kernwright::sim {

class TraceRecorder;

/// Made by the launching thread; thread-safe where blocks use it.
class ObservedLaunch final : public LaunchWatcher {
 public:
  /// `trace` is null where no thread of this launch is traced; `counts` says whether lines are
  /// counted.
  ObservedLaunch(const ObservedProgram& its_program, TraceRecorder* its_trace, bool its_counts)
      : program(its_program), trace(its_trace), counts(its_counts) {}

  std::unique_ptr<Watcher> watch(const WatchedBlocks& blocks) override;

  const ObservedProgram& program;
  TraceRecorder* const trace;
  const bool counts;

  /// The calling host thread's counts, by op, common to its blocks.
  LineCounts* thread_counts();
  /// The sum over host threads. After the last block.
  std::vector<LineCounts> total() const;

 private:
  std::mutex mutex_;  // guards what follows
  std::map<std::thread::id, std::vector<LineCounts>> by_thread_;
};

}  // namespace kernwright::sim
