// Shares one device between tasks: admission, order, streams of classes, results.
#pragma once

#include "schedule/accounts/budget.h"
#include "schedule/pacer.h"
#include "schedule/policy.h"
#include "schedule/task.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {
class Device;
}  // namespace kernwright

namespace kernwright::schedule {

class ModelContent;
class SchedulerCore;
class TaskHere;

struct SchedulerOptions {
  /// Bytes to reserve from, which the account of the device sets apart until close(). 0: the
  /// account itself, with all other schedulers that have no number (memory_account.h).
  std::uint64_t memory = 0;
  double share = 1;                      ///< of the device's time to reserve from
  std::shared_ptr<Policy> policy{};      ///< null: the default one
  std::shared_ptr<const Clock> clock{};  ///< null: the host's
  /// Tasks run by themselves: at once in submit(), or in a thread of their class. Else they
  /// run in step(), wait() and drain() only, in an order that depends on nothing else.
  bool background = true;
  /// Tasks of each class that may run at once.
  std::array<std::size_t, kClasses> most_running{64, 32, 8};
  std::size_t kept = 512;  ///< tasks that are over and remembered for tasks()
  PaceOptions pace{};      ///< of best-effort launches, and those of tasks with a share
  /// Makes a stream for a class, with this priority; null: Stream::create(). A partition of the
  /// device gives its own streams.
  std::function<Stream(Device&, int priority)> make_stream{};
  int multiprocessors = 0;  ///< that these streams run on; 0: all of the device
  /// Blocks of a launch at once: how tasks keep to a part of a device without green contexts. A
  /// persistent kernel gets a smaller grid, others are cut. 0: as many as the device has room for.
  std::uint64_t most_blocks = 0;
  /// Cuts long kernels of best-effort tasks (jit/slicing.h); null: they stay whole.
  LaunchCutter cut{};
  /// Long kernels of best-effort tasks whose blocks stay for many tiles are not cut, but stop when
  /// more urgent work comes, and go on behind it.
  bool yields = false;
  std::shared_ptr<Reservation> reserved{};  ///< of another scheduler, for as long as this one lives
};

/// How a thread waits for the end of a task: it looks for it at first, up to 50 us (5 ms for a
/// guaranteed task), or sleeps at once.
enum class WaitBy : std::uint8_t { looking, sleeping };

struct ClassStats {
  std::uint64_t submitted = 0, done = 0, failed = 0, cancelled = 0, refused = 0;
  std::size_t waiting = 0, running = 0;
  Time device{0};  ///< busy time of tasks that are over
};

struct TenantStats {
  std::string name;
  double share = 0;         ///< requested; 0 without one
  double used = 0;          ///< of the last second
  double used_shortly = 0;  ///< of the last 10 ms
  std::size_t live = 0;
  Time device{0};
};

struct SchedulerStats {
  std::array<ClassStats, kClasses> classes;
  std::vector<TenantStats> tenants;
  Amount capacity, reserved;
  Time now{0};
};

/// Runs tasks on streams of its own: non-blocking ones, seven in all, with a priority for each
/// class. Thread-safe. Work of a task may submit to the same scheduler and wait.
///
///   Scheduler scheduler(device, {.memory = 8'000'000'000});
///   auto task = scheduler.submit({.qos = Qos::best_effort, .name = "sum"},
///                                make_work([&](const Stream& on) { kernel.launch(...); }));
///   scheduler.result(task);
class Scheduler {
 public:
  /// Throws InvalidArgument for a share outside (0, 1]; the driver's errors.
  explicit Scheduler(Device& device, SchedulerOptions options = {});
  /// close()
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// The work goes behind all that is queued on `behind` now (empty: the legacy stream). A refused
  /// task comes back in that state. Throws InvalidArgument for a wrong specification and a closed
  /// scheduler, CaptureError while `behind` is captured, DeviceLost.
  TaskPointer submit(TaskSpec spec, std::shared_ptr<Work> work, const Stream& behind = {});

  /// A task of all work of this thread until the object of task_here.h ends. Waits until its
  /// requests are free; waiting tasks of the queue are not asked. It has no predecessors. Throws as
  /// submit() and result() do, and InvalidArgument where no running task can give enough back.
  /// While it waits it asks `is_interrupted` every 50 ms, with no lock held; after true the task is
  /// cancelled, and open() throws TaskCancelled.
  std::unique_ptr<TaskHere> open(TaskSpec spec, const Stream& behind = {},
                                 const std::function<bool()>& is_interrupted = {});

  /// Returns whether the task was over in time. In the work of another task it runs waiting tasks
  /// meanwhile; it throws InvalidArgument where that task cannot end before this one. The awaited
  /// task runs in the class of the waiting one, if that is more urgent.
  bool wait(const TaskPointer& task, std::optional<std::chrono::nanoseconds> timeout = {},
            WaitBy by = WaitBy::looking);
  /// Waits, then throws what made the task fail, Refused or TaskCancelled.
  void result(const TaskPointer& task);
  /// A waiting task is cancelled at once; a running one at its next launch, or when its work
  /// returns. False when all its work is queued on the device, or done.
  bool cancel(const TaskPointer& task);
  /// Runs the next task in this thread. False when none may begin now.
  bool step();
  /// Ends the tasks whose work is done. Where nobody waits for them it else takes a millisecond.
  void reap();
  /// Waits until no task waits or runs, and functions at their ends have returned; from such a
  /// function it does not wait for functions. Returns whether that was so in time.
  bool drain(std::optional<std::chrono::nanoseconds> timeout = {});
  /// `function` is called when the task is over, by any thread and with no lock held; at once when
  /// it is over already. It must not throw.
  void at_end(const TaskPointer& task, std::function<void()> function);

  /// From now on tasks of the model have `content` on the device while they run; null: no more.
  /// Throws InvalidArgument for an empty name, for a model with content
  /// already, and for content when the scheduler is closed.
  void keep(const std::string& model, std::shared_ptr<ModelContent> content);

  /// Why the task is in its state; for a waiting one, what it waits for and who holds it.
  std::string explain(const TaskPointer& task) const;
  std::vector<StateChange> history(const TaskPointer& task) const;
  TaskStats stats(const TaskPointer& task) const;
  std::exception_ptr failure(const TaskPointer& task) const;
  SchedulerStats stats() const;
  /// Those not over, in the order of submission.
  std::vector<TaskPointer> live() const;
  /// The latest of those that are over, in the order of their ends; then live().
  std::vector<TaskPointer> tasks() const;

  /// A scheduler of a new partition of the device (core/partition.h) with at least so many
  /// multiprocessors, which its tasks run on and nowhere else. Its memory is `options.memory`, by
  /// default the partition's part of this one's, and is reserved here until it is gone. Clock and
  /// background are those of this one, and the cutter where none is given. Throws PartitionError,
  /// DriverError (801) without green contexts, InvalidArgument where too little memory is
  /// unreserved.
  std::unique_ptr<Scheduler> partition(int multiprocessors, SchedulerOptions options = {});

  Device& device() const noexcept;
  int multiprocessors() const;        ///< that tasks run on
  bool has_threads() const noexcept;  ///< SchedulerOptions::background
  const Policy& policy() const noexcept;
  /// Cancels what waits, and waits for what runs. Later submissions throw InvalidArgument. Returns
  /// whether all has ended in time; else it may be called again.
  bool close(std::optional<std::chrono::nanoseconds> timeout = {});
  bool is_closed() const;

 private:
  /// Throws Error in a forked child, where a thread of the parent may hold the locks for good.
  SchedulerCore& reach() const;

  std::shared_ptr<SchedulerCore> core_;
};

}  // namespace kernwright::schedule
