// The checks of simulated devices: what they look for, and what they found.
#pragma once

#include "sim/check/report/findings.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim {

/// What is looked for beyond `memory` (bounds, alignment, use after free, writes to constants),
/// which is always on and stops a launch with an error.
struct CheckSet {
  /// Reads of global, shared and local memory that nothing has written. Device memory counts as
  /// unwritten from its allocation on; memory that is older than the check counts as written.
  bool init = false;
  /// Unordered accesses of two threads of one launch to the same bytes of global or shared memory,
  /// at least one of them a write, not both of them atomic, that do not write the same value.
  bool race = false;
  /// Threads that wait at different barriers for each other, member masks that differ or leave
  /// their own lane out, registers of wgmma that are touched before the wait. A barrier that can
  /// never be complete stops a launch always.
  bool sync = false;

  bool any() const noexcept { return init || race || sync; }
  bool operator==(const CheckSet&) const = default;
};

/// From words as in KERNWRIGHT_CHECKS: memory, init, race, sync, all. Throws InvalidArgument for
/// others, also for `streams`, which is a check of the whole process (set_stream_checks()).
CheckSet check_set(std::span<const std::string> words);

/// Turns checks on and off for the launches that follow, of all devices and threads, beside those
/// of living scopes, which stay on; returns what an earlier call, or KERNWRIGHT_CHECKS, had turned
/// on. Waits for running launches. Turning `init` on or off forgets what is initialised. What
/// KERNWRIGHT_CHECKS names is on from cuInit on; what no scope collects is logged as a warning.
/// Makes the devices like cuInit; throws InvalidArgument for a wrong environment.
CheckSet set_checks(CheckSet checks);
/// All that are on, those of scopes too.
CheckSet current_checks();

/// While an object of this class lives, findings of `init`, `race` and `sync` are collected, and
/// launches go on after them; errors that stop a launch are among the findings too.
///
/// Scopes nest, and end in any order, on any thread. The checks of all living ones are on, for the
/// launches of all threads. What a launch shows goes to the last made of the living scopes that the
/// thread made itself on which the launch runs (with KERNWRIGHT_SIM_SEED that may be one that
/// waits); where it made none, to the last made of all. The members may be called on any thread.
class CheckScope {
 public:
  /// At most `limit` different findings are kept; equal ones are one finding with a count.
  explicit CheckScope(CheckSet checks, std::size_t limit = Findings::kDefaultLimit);
  ~CheckScope();
  CheckScope(const CheckScope&) = delete;
  CheckScope& operator=(const CheckScope&) = delete;

  /// What was found so far.
  std::vector<Finding> findings() const;
  /// How often, also what found no room in the list.
  std::uint64_t total() const;

 private:
  Findings findings_;
};

/// From now on launches run their blocks and warps in orders that the seed chooses: on one thread,
/// with a few blocks in flight and warps that may change before each access to memory. The same
/// calls after the same seed replay exactly. Nothing: back to the usual order. Together with
/// set_schedule_seed() (device.h), which orders the work of streams, a whole program is one of its
/// legal executions. Waits for running launches.
void set_launch_seed(std::optional<std::uint64_t> seed);

/// The same while an object of this class lives; without a seed launches run in their usual order,
/// and on one thread, which makes them replay exactly too. Scopes nest, and end in any order, on
/// any thread: the last made of the living ones decides for the launches of all threads. One that
/// decides again goes on after its last launch, as if those in between had not been.
class ScheduleScope {
 public:
  explicit ScheduleScope(std::optional<std::uint64_t> seed);
  ~ScheduleScope();
  ScheduleScope(const ScheduleScope&) = delete;
  ScheduleScope& operator=(const ScheduleScope&) = delete;
};

/// Looks, where `init` is on, at device memory that is about to be copied to the host as a launch's
/// result: bytes that nothing has written are a finding. `whose` begins its text: which argument of
/// which kernel it is.
void check_results(std::uint64_t address, std::uint64_t bytes, std::string_view whose);

/// For a person, one finding after the other; "no findings" for none. `total` of the scope they are
/// from says how often something was found for which the list had no room.
std::string findings_text(std::span<const Finding> findings, std::uint64_t total = 0);
/// An array of objects; the keys are those of Finding and FaultReport.
std::string findings_json(std::span<const Finding> findings);

}  // namespace kernwright::sim
