// A process that does tasks on request and may be killed at any moment.
#pragma once

#include "base/errors.h"
#include "jit/compile/compile_wait.h"
#include "worker/child_process.h"
#include "worker/tasks.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// A worker ended in the middle of a task, by itself or because it used too much memory. The next
/// task gets a new process.
class WorkerLost : public Error {
 public:
  using Error::Error;
};

struct WorkerOptions {
  /// What to start; empty: worker_command().
  std::vector<std::string> command{};
  /// "NAME=value": in place of this process's own, e.g. KERNWRIGHT_DEVICE.
  std::vector<std::string> environment{};
  /// The tasks of this process instead of another one, for debuggers: nothing is isolated, and no
  /// deadline ends a task. Must outlive the worker.
  const TaskTable* in_process = nullptr;
  /// Resident bytes at which a worker is killed in the middle of a task; 0: no limit.
  std::uint64_t memory_limit = 0;
};

/// One call's task, by name, and what goes with it.
struct WorkerTask {
  std::string name;     ///< of a row of worker_tasks()
  std::string subject;  ///< what messages call it: "the compile of kernel.cu"
  std::span<const std::byte> request;
  std::span<const int> files{};  ///< descriptors that the worker gets duplicates of
};

/// Starts its process when first needed and keeps it between tasks. The process is gone with this
/// object, and with this process in whatever way that ends. One task at a time; not thread-safe.
/// Of no use in a forked child, which makes workers of its own.
class Worker {
 public:
  explicit Worker(WorkerOptions options = {});

  /// Starts the process if there is none, without waiting for it to be ready.
  void start();

  /// Does the task and waits for its result. Throws what the task throws, with its type; Timeout,
  /// Cancelled or Interrupted as `limits` say; WorkerLost. In the last four cases the process is
  /// gone.
  Message run(const WorkerTask& task, const WaitLimits& limits = {});

  /// Ends the process at once; the next task starts another one.
  void kill() noexcept { process_.reset(); }

  /// Of the process; -1 when there is none.
  pid_t process_id() const noexcept;
  /// Processes started so far.
  int starts() const noexcept { return starts_; }

 private:
  void watch(const WorkerTask& task, const WaitLimits& limits) const;
  Message run_here(const WorkerTask& task) const;
  [[noreturn]] void lose(const WorkerTask& task);

  WorkerOptions options_;
  std::unique_ptr<ChildProcess> process_;
  int starts_ = 0;
};

/// The command that starts a worker where options name none: what set_worker_command() said, else
/// the program kernwright-worker, found through PATH. Thread-safe.
std::vector<std::string> worker_command();
void set_worker_command(std::vector<std::string> command);

}  // namespace kernwright
