// The inside of a scheduler: its data, and the locks that guard it.
#pragma once

#include "schedule/accounts/memory_account.h"
#include "schedule/accounts/tenant.h"
#include "schedule/model_content.h"
#include "schedule/pacer.h"
#include "schedule/scheduler.h"
#include "schedule/waiting.h"
#include "schedule/yield_orders.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>

namespace kernwright::schedule {

/// Lock order: `reaping_`, then `measuring_`, then `mutex_`. No driver call, work, callback or
/// foreign policy is called under `mutex_`.
class SchedulerState {
 public:
  using Lock = std::unique_lock<std::mutex>;

  SchedulerState(Device& target, SchedulerOptions given);
  int multiprocessors() const;  ///< of its tasks

  Device& device;
  const SchedulerOptions options;
  const std::shared_ptr<Policy> policy;
  const std::shared_ptr<const Clock> clock;

 protected:
  friend class Scheduler;  // partition() reserves from the budget
  /// Orders of launches that were told to stop go to the device. Called with no lock held.
  void send_orders();
  Load load() const;
  /// Whether the policy keeps the class back now. A task that waits for another task in the work
  /// counts as not running: else it could wait for a task that it keeps back.
  bool is_held(Qos qos) const;

  /// A stream, and the tasks with work on it in their order.
  struct Lane {
    Stream stream;
    Qos qos;
    std::vector<TaskPointer> issued;  ///< in the order of the ends; has room for all of `load`
    std::size_t load = 0;             ///< tasks that run on it
    bool keeps_up = false;            ///< few tasks were left when the last ones ended
    /// One thread at a time records an end and adds the task. Taken before `mutex_`.
    std::unique_ptr<std::mutex> ending = std::make_unique<std::mutex>();
  };

  /// What the watching thread does: asks the driver; looks in from time to time; nothing.
  enum class Watch : std::uint8_t { awake, resting, asleep };

  mutable std::mutex mutex_;         ///< guards all below
  std::mutex reaping_;               ///< one thread asks the driver about events at a time
  std::mutex measuring_;             ///< the same for the events of launches
  std::condition_variable changed_;  ///< for threads that wait for a task
  std::array<std::condition_variable, kClasses> startable_;  ///< for threads that begin tasks
  std::condition_variable issued_;                           ///< for the watching thread
  std::shared_ptr<void> apart_;  ///< the memory that it was given, in the account of the device
  Budget budget_;
  Waiting waiting_;
  Pacer pacer_;
  std::map<std::uint64_t, TaskPointer> live_;
  std::deque<TaskPointer> ended_;  ///< the latest, options.kept of them at most
  std::map<std::string, std::shared_ptr<Tenant>, std::less<>> tenants_;
  std::map<std::string, std::shared_ptr<ModelContent>, std::less<>> contents_;  ///< by model
  std::array<std::shared_ptr<EvictionGroup>, kClasses> groups_;  ///< of tasks without memory=
  std::vector<Lane> lanes_;
  std::unique_ptr<YieldOrders> orders_;    ///< where launches yield; not guarded
  std::vector<Event> events_;              ///< for reuse
  std::vector<Event> marks_;               ///< the same without timing
  std::atomic<Time> busy_until_{Time(0)};  ///< many tasks come in a row; not guarded
  std::optional<Event> last_launch_end_;   ///< guarded by `measuring_`
  std::optional<Event> last_end_;          ///< guarded by `reaping_`: the latest end of a task
  std::array<std::size_t, kClasses> running_{};
  std::array<std::size_t, kClasses> blocked_{};  ///< running tasks that wait in the work
  std::array<ClassStats, kClasses> classes_{};
  std::atomic<std::uint64_t> next_id_{1};
  std::uint64_t made_tenants_ = 0;
  std::size_t issuing_ = 0;                      ///< tasks whose work is being queued
  std::size_t threads_ = 0;                      ///< at work
  std::array<std::size_t, kClasses> servers_{};  ///< threads of the class
  std::array<std::size_t, kClasses> idle_{};     ///< of these, those that wait for a task
  std::uint64_t changes_ = 0;                    ///< that may let a task begin
  std::size_t eager_ = 0;                        ///< threads that wait for the end of a task
  std::size_t callbacks_ = 0;                    ///< functions to be called at the end of tasks
  bool has_watcher_ = false;
  Watch watch_ = Watch::awake;
  /// When a thread last asked the driver about ends of tasks. Not guarded.
  std::atomic<std::chrono::steady_clock::time_point> looked_{};
  std::atomic<long> abandoned_{0};  ///< references by TaskHere::abandon(). Not guarded.
  bool is_closed_ = false;
  /// A tenant at its limit, or the memory of another scheduler, keeps tasks back: nobody tells when
  /// that ends.
  bool capped_ = false;
  std::string policy_failure_;  ///< what the last choice threw; empty where it went well
};

}  // namespace kernwright::schedule
