// The threads of the process that compile.
#pragma once

#include <functional>
#include <memory>

namespace kernwright {

/// As many workers as the machine has hardware threads, started when first needed; one that finds
/// no work for two seconds ends. Thread-safe. Nothing of it is joined or destroyed at exit.
class CompilePool {
 public:
  explicit CompilePool(unsigned workers);
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;
  /// Workers finish what is queued; none is waited for.
  ~CompilePool() = default;

  /// Runs `task` on a worker, in the order of the calls. It must not throw. Throws Error when no
  /// thread can be started and none runs.
  void submit(std::function<void()> task);

  /// One worker more, until the matching remove_worker(): the task of one is waited for by nobody
  /// and shall not keep others waiting.
  void add_worker();
  void remove_worker() noexcept;

  unsigned workers() const noexcept;

  /// The pool of this process; a forked child gets one of its own.
  static CompilePool& process();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace kernwright
