// Host threads for blocks.
#pragma once

#include <functional>

namespace kernwright::sim {

/// Threads are started when first needed and wait between uses. One use at a time.
class ThreadPool {
 public:
  /// The process's pool; never destroyed. Its threads do not exist in a forked child.
  static ThreadPool& get();

  /// Threads of a launch, the caller's included: KERNWRIGHT_SIM_THREADS or all cores.
  static int default_width();

  /// Calls work(0) on this thread and work(1) ... work(width - 1) on others, and returns when all
  /// returned. Others not begun at the end of work(0) are not called, so work(0) alone must be
  /// enough. `meanwhile`, if any, is called now and then while this thread waits for the others.
  /// Neither may throw.
  void run(int width, const std::function<void(int)>& work,
           const std::function<void()>& meanwhile = {});

 private:
  ThreadPool();
  struct State;
  State* state_;
};

}  // namespace kernwright::sim
