// A process that does tasks on request and may be killed at any moment.
#pragma once

#include "base/errors.h"
#include "jit/compile/compile_wait.h"
#include "jit/compile/process_folder.h"
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

/// A worker ended because the task ran out of stack, kTaskStack.
class WorkerOverflow : public WorkerLost {
 public:
  using WorkerLost::WorkerLost;
};

/// A worker ended because the task used more than WorkerOptions::memory_limit.
class WorkerOutgrown : public WorkerLost {
 public:
  using WorkerLost::WorkerLost;
};

struct WorkerOptions {
  /// The program to start; empty: worker_command().
  std::vector<std::string> command{};
  /// "NAME=value": in place of this process's own, e.g. KERNWRIGHT_DEVICE. A worker's
  /// CUDA_DEVICE_MAX_CONNECTIONS is 2 unless these say otherwise.
  std::vector<std::string> environment{};
  /// The tasks of this process instead of another one, for debuggers: nothing is isolated, and no
  /// deadline ends a task. Must outlive the worker.
  const TaskTable* in_process = nullptr;
  /// Resident bytes at which a worker is killed in the middle of a task; 0: no limit.
  std::uint64_t memory_limit = 0;
};

/// One call's task: its name, its request and its descriptors.
struct WorkerTask {
  std::string name;     ///< of a row of worker_tasks()
  std::string subject;  ///< its name in messages: "the compile of kernel.cu"
  std::span<const std::byte> request;
  std::span<const int> files{};  ///< descriptors; the worker gets duplicates
};

/// Starts its process when first needed and keeps it between tasks. The process ends with this
/// object, and with this process in any case; so does its $TMPDIR, a folder of its own. Its log
/// lines are logged here. One task at a time; not thread-safe. Of no use in a forked child: a child
/// makes workers of its own.
class Worker {
 public:
  explicit Worker(WorkerOptions options = {});

  /// Starts the process if there is none, without waiting for it to be ready. Throws
  /// ProcessNotStarted.
  void start();

  /// Starts the process, sends it the task and returns. The task's result or error is dropped. For
  /// short requests. Does nothing where tasks run in_process. Throws ProcessNotStarted.
  void post(const WorkerTask& task);

  /// Does the task and waits for its result. Throws the task's exception with its type; Timeout,
  /// Cancelled or Interrupted as `limits` say; WorkerLost. In the last four cases the process is
  /// gone.
  Message run(const WorkerTask& task, const WaitLimits& limits = {});

  /// Ends the process at once; the next task starts another one.
  void kill() noexcept;

  /// Id of the process; -1 when there is none. This process's own if tasks run in_process.
  pid_t process_id() const noexcept;
  /// Whether a process was started and not ended.
  bool has_process() const noexcept { return process_ != nullptr; }
  /// Resident bytes of the process; 0 without a process.
  std::uint64_t resident_bytes() const {
    return process_ == nullptr ? 0 : process_->resident_bytes();
  }
  /// Processes started so far.
  int starts() const noexcept { return starts_; }
  /// Whether the process has done a task. Before its first answer it may be unable to run at all.
  bool has_answered() const noexcept { return has_answered_; }

 private:
  void send(const WorkerTask& task, const Channel::WhileWaiting& waiting);
  Message receive(const Channel::WhileWaiting& waiting);
  void watch(const WorkerTask& task, const WaitLimits& limits) const;
  Message run_here(const WorkerTask& task) const;
  [[noreturn]] void lose(const WorkerTask& task);

  WorkerOptions options_;
  std::unique_ptr<ProcessFolder> folder_;  ///< the process's $TMPDIR, which must outlive it
  std::unique_ptr<ChildProcess> process_;
  int starts_ = 0;
  int unread_ = 0;  ///< replies to post() still to come
  bool has_answered_ = false;
};

/// The command to start a worker where options name none: the one of set_worker_command(), else the
/// program kernwright-worker, found through PATH. Thread-safe.
std::vector<std::string> worker_command();
void set_worker_command(std::vector<std::string> command);

}  // namespace kernwright
