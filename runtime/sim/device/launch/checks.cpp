// Turning checks on and off, and where their findings go.
#include "sim/device/launch/checks.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/log.h"
#include "sim/device/memory/checked_range.h"
#include "sim/device/sim_driver.h"
#include "sim/device/stream/work.h"

#include <algorithm>
#include <utility>

namespace kernwright::sim {

CheckSet Checks::current() const noexcept { return {init_.load(), race_.load(), sync_.load()}; }

CheckSet Checks::set(CheckSet checks) {
  const CheckSet before = std::exchange(outside_, checks);
  apply();
  return before;
}

void Checks::apply() {
  CheckSet all = outside_;
  for (const OpenScope& scope : scopes_) {
    all.init |= scope.checks.init;
    all.race |= scope.checks.race;
    all.sync |= scope.checks.sync;
  }
  if (all.init != init_ || !all.any()) shadow.clear();
  init_ = all.init;
  race_ = all.race;
  sync_ = all.sync;
}

void Checks::enter(Findings* scope, CheckSet checks) {
  scopes_.push_back({scope, checks, thread_number()});
  apply();
}

void Checks::leave(const Findings* scope) {
  std::erase_if(scopes_, [&](const OpenScope& open) { return open.findings == scope; });
  apply();
}

Findings* Checks::collector() const noexcept {
  const std::uint64_t thread = thread_number();
  const auto found = std::find_if(scopes_.rbegin(), scopes_.rend(),
                                  [&](const OpenScope& open) { return open.thread == thread; });
  if (found != scopes_.rend()) return found->findings;
  return scopes_.empty() ? nullptr : scopes_.back().findings;
}

std::vector<Finding> Checks::deliver(std::vector<Finding>&& findings) {
  Findings* const to = collector();
  if (to == nullptr) return std::move(findings);
  for (Finding& finding : findings) to->add(std::move(finding));
  return {};
}

void Checks::set_seed(std::optional<std::uint64_t> seed) noexcept {
  schedules_.front() = {nullptr, seed, 0};
}

void Checks::enter_schedule(const ScheduleScope* scope, std::optional<std::uint64_t> seed) {
  schedules_.push_back({scope, seed, 0});
}

void Checks::leave_schedule(const ScheduleScope* scope) noexcept {
  std::erase_if(schedules_, [&](const Schedule& one) { return one.scope == scope; });
}

std::uint64_t Checks::next_seed() noexcept {
  Schedule& schedule = schedules_.back();
  if (!schedule.seed) return 0;
  return std::max<std::uint64_t>(splitmix_at(*schedule.seed, schedule.launches++), 1);
}

Ticks& Checks::ticks() {
  if (ticks_ == nullptr) ticks_ = std::make_unique<Ticks>();
  return *ticks_;
}

CheckSet check_set(std::span<const std::string> words) {
  CheckSet set;
  for (const std::string& word : words) {
    const bool all = word == "all";
    if (word == "streams") {
      throw InvalidArgument(
          "\"streams\" is a check of the whole process, whose findings are errors of the calls "
          "that show them, not of a block: set KERNWRIGHT_CHECKS=streams before the first use of "
          "a device");
    }
    if (!all && word != "init" && word != "race" && word != "sync" && word != "memory") {
      throw InvalidArgument(format(
          "\"{}\" is no check of the simulated device: memory, init, race, sync, all", word));
    }
    set.init |= all || word == "init";
    set.race |= all || word == "race";
    set.sync |= all || word == "sync";
  }
  return set;
}

CheckSet set_checks(CheckSet checks) { return QuietDriver().driver.checks.set(checks); }

void set_launch_seed(std::optional<std::uint64_t> seed) {
  QuietDriver().driver.checks.set_seed(seed);
}

void set_read_only(std::uint64_t address, bool is_read_only) {
  const QuietDriver quiet;
  Memory* const memory = quiet.driver.get_memory(address);
  if (memory != nullptr && memory->set_read_only(address, is_read_only)) return;
  throw InvalidArgument(
      format("no memory of a simulated device begins at {:#x}: only whole allocations can be "
             "made read-only",
             address));
}

CheckSet current_checks() {
  initialise_sim_driver();
  return sim_driver().checks.current();
}

namespace {

/// A finding about the argument of a launch, for the open scope, or the log.
void report_argument(SimDriver& instance, std::uint64_t address, std::string message,
                     std::string_view what, std::string_view hint) {
  std::vector<Finding> found(1);
  found[0].fault.kind = FaultKind::init;
  found[0].fault.message = std::move(message);
  found[0].fault.address = address;
  found[0].what = what;
  found[0].space = "global memory";
  found[0].hint = hint;
  for (const Finding& finding : instance.checks.deliver(std::move(found)))
    log(LogLevel::warning, "simulated device: {}", finding.to_string());
}

}  // namespace

void check_results(std::uint64_t address, std::uint64_t bytes, std::string_view whose) {
  SimDriver& instance = sim_driver();
  if (!instance.checks.init()) return;
  const std::lock_guard execution(instance.execution);
  const Unwritten unwritten = instance.checks.shadow.unwritten(address, bytes);
  if (unwritten.bytes == 0) return;
  report_argument(
      instance, address + unwritten.first,
      format("{}, and nothing has written {} of the {} bytes that are copied back, the first at "
             "byte {}",
             whose, unwritten.bytes, bytes, unwritten.first),
      "copy to the host",
      "kw.Out copies all of the array back: let the kernel write every element, or pass kw.InOut "
      "where it leaves some as they were");
}

Change change_since(std::uint64_t address, std::span<const std::byte> before) {
  const QuietDriver quiet;
  const std::byte* const after =
      checked_range({.call = "a comparison", .address = address, .bytes = before.size()});
  Change change;
  for (std::size_t i = before.size(); i-- > 0;) {
    if (before[i] == after[i]) continue;
    ++change.count;
    change.first = i;
  }
  return change;
}

void check_input(std::uint64_t address, std::span<const std::byte> before, std::string_view whose) {
  SimDriver& instance = sim_driver();
  if (!instance.checks.init()) return;
  const Change change = change_since(address, before);
  if (change.count == 0) return;
  const std::lock_guard execution(instance.execution);
  report_argument(instance, address + change.first,
                  format("{}, and the kernel has changed {} of its {} bytes, the first at byte {}",
                         whose, change.count, before.size(), change.first),
                  "write",
                  "kw.In copies nothing back, so these values are lost: pass kw.InOut, or let the "
                  "kernel leave its input alone");
}

CheckScope::CheckScope(CheckSet checks, std::size_t limit) {
  findings_.set_limit(limit);
  QuietDriver().driver.checks.enter(&findings_, checks);
}

CheckScope::~CheckScope() {
  change_at_end([&](SimDriver& driver) { driver.checks.leave(&findings_); });
}

std::vector<Finding> CheckScope::findings() const { return findings_.list(); }
std::uint64_t CheckScope::total() const { return findings_.total(); }

ScheduleScope::ScheduleScope(std::optional<std::uint64_t> seed) {
  QuietDriver().driver.checks.enter_schedule(this, seed);
}

ScheduleScope::~ScheduleScope() {
  change_at_end([&](SimDriver& driver) { driver.checks.leave_schedule(this); });
}

}  // namespace kernwright::sim
