// The state of the checks of all simulated devices.
#pragma once

#include "sim/check/checked_launch.h"
#include "sim/check/history/global_shadow.h"
#include "sim/checks.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kernwright::sim {

/// The interface of launches, copies and allocations to the checks. The flags are read without a
/// lock; the rest is used with SimDriver::execution held.
class Checks {
 public:
  CheckSet current() const noexcept;
  CheckSet set(CheckSet checks);  ///< as set_checks()
  bool init() const noexcept { return init_.load(std::memory_order_relaxed); }

  /// Launches run under schedules of this seed from now on where no `scope` says otherwise;
  /// nothing: in the usual order.
  void set_seed(std::optional<std::uint64_t> seed) noexcept;
  /// Nothing: in the usual order, on one thread.
  void enter_schedule(const ScheduleScope* scope, std::optional<std::uint64_t> seed);
  void leave_schedule(const ScheduleScope* scope) noexcept;
  /// The seed of the next launch, never 0 under a seed.
  std::uint64_t next_seed() noexcept;
  /// Whether launches are the same each time.
  bool in_schedule() const noexcept { return schedules_.size() > 1; }

  /// Findings go to `scope` until it leaves, on this thread rather than on others.
  void enter(Findings* scope, CheckSet checks);
  void leave(const Findings* scope);
  /// Takes the findings of a launch, and the cause of its stop; returns findings without a
  /// collector.
  std::vector<Finding> deliver(std::vector<Finding>&& findings);

  GlobalShadow shadow;
  Ticks& ticks();

 private:
  struct OpenScope {
    Findings* findings;
    CheckSet checks;
    std::uint64_t thread;  ///< thread_number() of the one that made it
  };
  struct Schedule {
    const ScheduleScope* scope = nullptr;
    std::optional<std::uint64_t> seed;
    std::uint64_t launches = 0;  ///< under the seed
  };
  void apply();
  Findings* collector() const noexcept;

  std::atomic<bool> init_{false}, race_{false}, sync_{false};
  CheckSet outside_;               ///< of scopes
  std::vector<OpenScope> scopes_;  ///< in the order in which they were made
  std::unique_ptr<Ticks> ticks_;
  std::vector<Schedule> schedules_{1};  ///< the first one is that of no scope
};

}  // namespace kernwright::sim
