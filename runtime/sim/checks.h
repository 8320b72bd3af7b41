// The checks of simulated devices: their kinds and their findings.
#pragma once

#include "sim/check/report/findings.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim {

/// The checks other than `memory` (bounds, alignment, use after free, writes to constants):
/// `memory` is always on and stops a launch with an error.
struct CheckSet {
  /// Reads of unwritten global, shared and local memory. Device memory counts as unwritten from its
  /// allocation on; memory older than the check counts as written.
  bool init = false;
  /// Unordered accesses of two threads of one launch to the same bytes of global or shared memory,
  /// at least one of them a write, not both atomic, and not two writes of the same value.
  bool race = false;
  /// Threads at different barriers wait for each other, member masks differ or leave their own lane
  /// out, registers of wgmma are touched before the wait. A barrier that can never be complete
  /// stops a launch always.
  bool sync = false;

  bool any() const noexcept { return init || race || sync; }
  bool operator==(const CheckSet&) const = default;
};

/// From words as in KERNWRIGHT_CHECKS: memory, init, race, sync, all. Throws InvalidArgument for
/// others, also for `streams`, a check of the whole process (set_stream_checks()).
CheckSet check_set(std::span<const std::string> words);

/// Turns checks on and off for later launches, of all devices and threads. The checks of living
/// scopes stay on beside them. Returns the checks turned on by an earlier call, or
/// KERNWRIGHT_CHECKS. Waits for running launches. Turning `init` on or off forgets the initialised
/// bytes. The checks of KERNWRIGHT_CHECKS are on from cuInit on; findings outside all scopes are
/// logged as a warning. Makes the devices like cuInit; throws InvalidArgument for a wrong
/// environment.
CheckSet set_checks(CheckSet checks);
/// All active checks, including those of scopes.
CheckSet current_checks();

/// During the lifetime of an object, findings of `init`, `race` and `sync` are collected, and
/// launches go on after them; errors that stop a launch are among the findings too.
///
/// Scopes nest, and end in any order, on any thread. The checks of all living ones are on, for the
/// launches of all threads. A launch's findings go to the last living scope made on the launch's
/// own thread (with KERNWRIGHT_SIM_SEED this may be a waiting thread). If that thread made none,
/// they go to the last of all. The members may be called on any thread.
class CheckScope {
 public:
  /// At most `limit` different findings are kept; equal ones are one finding with a count.
  explicit CheckScope(CheckSet checks, std::size_t limit = Findings::kDefaultLimit);
  ~CheckScope();
  CheckScope(const CheckScope&) = delete;
  CheckScope& operator=(const CheckScope&) = delete;

  /// The findings so far.
  std::vector<Finding> findings() const;
  /// Number of occurrences, also of those without room in the list.
  std::uint64_t total() const;

 private:
  Findings findings_;
};

/// From now on the seed chooses the orders of a launch's blocks and warps: on one thread, with a
/// few blocks in flight, and a possible change of warps before each access to memory. The same
/// calls after the same seed replay exactly. Nothing: back to the usual order. set_schedule_seed()
/// (device.h) orders the work of streams; together with it, a whole program is one of its legal
/// executions. Waits for running launches.
void set_launch_seed(std::optional<std::uint64_t> seed);

/// The same while an object of this class lives. Without a seed launches run in their usual order,
/// and on one thread, so they replay exactly too. Scopes nest, and end in any order, on any thread:
/// the last of the living ones decides for the launches of all threads. When it decides again it
/// goes on after its own last launch; launches in between do not count.
class ScheduleScope {
 public:
  explicit ScheduleScope(std::optional<std::uint64_t> seed);
  ~ScheduleScope();
  ScheduleScope(const ScheduleScope&) = delete;
  ScheduleScope& operator=(const ScheduleScope&) = delete;
};

/// From now on a launch that writes the device memory beginning at `address` faults, in whatever
/// way it writes; or no longer. Copies and fills of the host go on. Throws InvalidArgument if no
/// allocation of a simulated device begins there. Waits for running launches.
void set_read_only(std::uint64_t address, bool is_read_only);

/// With `init` on, checks device memory before its copy to the host as a launch's result: unwritten
/// bytes are a finding. `whose` begins its text: the argument and its kernel.
void check_results(std::uint64_t address, std::uint64_t bytes, std::string_view whose);

/// The bytes of device memory that differ from what it held before.
struct Change {
  std::size_t count = 0;
  std::size_t first = 0;
};

/// Compares device memory where it lies, without a copy to the host. Waits for running launches.
Change change_since(std::uint64_t address, std::span<const std::byte> before);

/// With `init` on, checks device memory filled with `before` for a launch. It is not copied back:
/// changes by the launch are lost, a finding.
void check_input(std::uint64_t address, std::span<const std::byte> before, std::string_view whose);

/// For a person, one finding after the other; "no findings" for none. `total` of their scope counts
/// also those without room in the list.
std::string findings_text(std::span<const Finding> findings, std::uint64_t total = 0);
/// An array of objects; the keys are those of Finding and Fault.
std::string findings_json(std::span<const Finding> findings);

}  // namespace kernwright::sim
