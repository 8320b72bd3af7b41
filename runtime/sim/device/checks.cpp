// Turning checks on and off, and where their findings go.
#include "sim/device/checks.h"

#include "base/env.h"
#include "base/errors.h"
#include "base/format.h"
#include "sim/device/platform.h"

namespace kernwright::sim {

CheckSet Checks::current() const noexcept { return {init_.load(), race_.load(), sync_.load()}; }

void Checks::turn(CheckSet checks) {
  if (checks.init != init_ || !checks.any()) shadow.clear();
  init_ = checks.init;
  race_ = checks.race;
  sync_ = checks.sync;
}

std::vector<Finding> Checks::deliver(std::vector<Finding>&& findings) {
  Findings* const collector = sink.load();
  if (collector == nullptr) return std::move(findings);
  for (Finding& finding : findings) collector->add(std::move(finding));
  return {};
}

void Checks::set_seed(std::optional<std::uint64_t> seed) noexcept {
  seed_ = seed;
  launches_ = 0;
}

std::uint64_t Checks::next_seed() noexcept {
  if (!seed_) return 0;
  std::uint64_t z = *seed_ + ++launches_ * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return z == 0 ? 1 : z;
}

Ticks& Checks::ticks() {
  if (ticks_ == nullptr) ticks_ = std::make_unique<Ticks>();
  return *ticks_;
}

CheckSet check_set(std::span<const std::string> words) {
  CheckSet set;
  for (const std::string& word : words) {
    if (word == "all") return {true, true, true};
    if (word == "init") {
      set.init = true;
    } else if (word == "race") {
      set.race = true;
    } else if (word == "sync") {
      set.sync = true;
    } else if (word != "memory" && word != "streams") {
      throw InvalidArgument(format(
          "\"{}\" is no check of the simulated device: memory, init, race, sync, all", word));
    }
  }
  return set;
}

CheckSet set_checks(CheckSet checks) {
  initialise_platform();
  Platform& instance = platform();
  const std::lock_guard execution(instance.execution);
  const CheckSet before = instance.checks.current();
  instance.checks.turn(checks);
  return before;
}

void set_launch_seed(std::optional<std::uint64_t> seed) {
  initialise_platform();
  Platform& instance = platform();
  const std::lock_guard execution(instance.execution);
  instance.checks.set_seed(seed);
}

CheckSet current_checks() {
  initialise_platform();
  return platform().checks.current();
}

CheckScope::CheckScope(CheckSet checks, std::size_t limit) {
  findings_.set_limit(limit);
  before_ = current_checks();
  set_checks(
      {before_.init || checks.init, before_.race || checks.race, before_.sync || checks.sync});
  outer_ = platform().checks.sink.exchange(&findings_);
}

CheckScope::~CheckScope() {
  try {
    Platform& instance = platform();
    const std::lock_guard execution(instance.execution);
    instance.checks.sink = outer_;
    instance.checks.turn(before_);
  } catch (const Failure&) {
    // The process forked: its child has no devices.
  }
}

std::vector<Finding> CheckScope::findings() const { return findings_.list(); }
std::uint64_t CheckScope::total() const { return findings_.total(); }

}  // namespace kernwright::sim
