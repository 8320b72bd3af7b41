// One piece of work for a device: its requests, its states, its costs.
#pragma once

#include "base/errors.h"
#include "core/event.h"
#include "core/stream.h"
#include "schedule/accounts/budget.h"
#include "schedule/clock.h"
#include "schedule/qos.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::schedule {

class ModelContent;
class Task;
class TaskMemory;
class Tenant;
using TaskPointer = std::shared_ptr<Task>;

/// What is reserved, and what must not be exceeded.
template <typename T>
struct Bounds {
  T request{};
  T limit{};
};

struct TaskSpec {
  Qos qos = Qos::guaranteed;
  std::optional<Bounds<std::uint64_t>> memory = std::nullopt;  ///< bytes
  std::optional<Bounds<double>> share = std::nullopt;  ///< of the device's time, above 0 up to 1
  int priority = 0;                             ///< within the class: higher numbers go first
  std::optional<Time> deadline = std::nullopt;  ///< after the submission
  std::string name{};
  std::string model{};               ///< tasks of one model share its account of device time
  std::vector<TaskPointer> after{};  ///< goes behind their work on the device

  /// Throws InvalidArgument for shares outside (0, 1], limits below requests, a guaranteed task
  /// with a memory limit above its request, and an empty predecessor.
  void check() const;
  Amount request() const noexcept;
};

/// pending -> queued -> admitted -> running -> done, failed or cancelled; pending -> refused.
/// running: its work is being queued on the device, or not done there.
enum class TaskState : std::uint8_t {
  pending,
  queued,
  admitted,
  running,
  done,
  failed,
  cancelled,
  refused,
};
const char* state_name(TaskState state) noexcept;
constexpr bool is_over(TaskState state) noexcept { return state >= TaskState::done; }

struct StateChange {
  TaskState state = TaskState::pending;
  Time time{0};
  std::string reason;
};

struct TaskStats {
  Time queued{0};                 ///< from the submission to the beginning, or until now
  Time device{0};                 ///< busy time on the device
  std::uint64_t launches = 0;     ///< of kernels and graphs
  std::uint64_t bytes = 0;        ///< reserved
  std::uint64_t peak = 0;         ///< bytes of its arrays at most; counted for tasks with memory=
  std::uint64_t preemptions = 0;  ///< times that it had to wait before a launch, or in one
};

/// The task was refused: the reason says what would fit.
class Refused : public Error {
 public:
  using Error::Error;
};

/// The task was cancelled: before it began, or at one of its launches.
class TaskCancelled : public Error {
 public:
  using Error::Error;
};

/// Queues launches and copies on `stream`; called once, by any thread. The scheduler lets go of it
/// then, on that thread, and with no lock held.
class Work {
 public:
  virtual ~Work() = default;
  virtual void run(const Stream& stream) = 0;
};

/// TaskCancelled, for a task that was cancelled after it had begun.
std::exception_ptr cancelled_in_work(const Task& task) noexcept;

/// A function as work.
std::unique_ptr<Work> make_work(std::function<void(const Stream&)> function);

/// Made by Scheduler::submit(). Thread-safe.
class Task {
 public:
  Task(std::uint64_t id, TaskSpec spec, std::shared_ptr<Work> work, Time submitted);
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task();

  std::uint64_t id() const noexcept { return id_; }  ///< counts submissions of its scheduler
  const TaskSpec& spec() const noexcept { return spec_; }
  std::string label() const;  ///< its name, or "task 7"
  TaskState state() const noexcept { return state_.load(std::memory_order_acquire); }
  bool is_over() const noexcept { return schedule::is_over(state()); }
  Time submitted() const noexcept { return submitted_; }
  /// On the scheduler's clock.
  std::optional<Time> deadline() const noexcept {
    return spec_.deadline ? std::optional(submitted_ + *spec_.deadline) : std::nullopt;
  }
  /// The class it runs in now: a more urgent task that waits for it lends its own.
  Qos qos() const noexcept { return lent_.load(std::memory_order_relaxed); }

 private:
  friend class SchedulerCore;
  friend class SchedulerReport;
  friend class TaskHere;
  friend class TaskScope;
  friend class Waiting;

  const std::uint64_t id_;
  const TaskSpec spec_;
  const Time submitted_;
  const void* core_ = nullptr;  ///< its scheduler; set before others see it
  std::atomic<TaskState> state_{TaskState::pending};
  std::atomic<Qos> lent_;
  std::atomic<bool> cancelled_{false};  ///< asked for
  std::atomic<std::uint64_t> launches_{0};
  std::atomic<std::uint64_t> preemptions_{0};
  std::atomic<bool> has_yielded_{false};  ///< a launch stopped by order and is to go on

  // Guarded by the mutex of the scheduler.
  std::shared_ptr<Work> work_;
  std::vector<TaskPointer> after_;  ///< predecessors, until the end
  std::array<StateChange, 5> changes_;
  std::size_t change_count_ = 0;
  Time device_{0};
  Reservation reservation_;
  std::shared_ptr<Tenant> tenant_;
  std::shared_ptr<TaskMemory> memory_;     ///< while its work is being queued
  std::shared_ptr<ModelContent> content_;  ///< in use from its beginning to its end
  std::uint64_t peak_ = 0;
  std::exception_ptr failure_;
  std::vector<std::function<void()>> at_end_;
  std::vector<std::weak_ptr<Task>> successors_;
  TaskPointer next_over_;          ///< another one that ended just before
  std::size_t predecessors_ = 0;   ///< whose work is not queued yet
  bool is_paced_ = false;          ///< its device time is that of its launches
  bool is_issued_ = false;         ///< all its work is queued on the device
  const Task* awaited_ = nullptr;  ///< its work waits for this task
  bool waits_to_launch_ = false;   ///< its work waits in front of a launch
  bool is_reaped_ = false;         ///< the driver told that its work is done
  std::size_t lane_ = 0;           ///< its stream among those of the scheduler
  std::optional<Event> ready_;     ///< work of the submitting thread's stream that it goes behind
  std::optional<Event> begin_;
  std::optional<Event> end_;
};

}  // namespace kernwright::schedule
