// The state of the checks of all simulated devices.
#pragma once

#include "sim/check/checked_launch.h"
#include "sim/check/global_shadow.h"
#include "sim/checks.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kernwright::sim {

/// What launches, copies and allocations ask and tell. The flags are read without a lock; the rest
/// is touched with Platform::execution held.
class Checks {
 public:
  CheckSet current() const noexcept;
  void turn(CheckSet checks);  ///< with Platform::execution held
  bool init() const noexcept { return init_.load(std::memory_order_relaxed); }

  /// Launches run under schedules of this seed from now on; nothing: in the usual order.
  void set_seed(std::optional<std::uint64_t> seed) noexcept;
  /// Of the next launch, never 0 under a seed.
  std::uint64_t next_seed() noexcept;

  /// Where findings go; null: nobody collects.
  std::atomic<Findings*> sink{nullptr};
  /// Takes the findings of a launch, and what stopped one; returns what nobody collects.
  std::vector<Finding> deliver(std::vector<Finding>&& findings);

  GlobalShadow shadow;
  Ticks& ticks();

 private:
  std::atomic<bool> init_{false}, race_{false}, sync_{false};
  std::unique_ptr<Ticks> ticks_;
  std::optional<std::uint64_t> seed_;
  std::uint64_t launches_ = 0;  ///< under the seed
};

}  // namespace kernwright::sim
