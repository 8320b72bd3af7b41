// Device time of one tenant over the last second.
#pragma once

#include "schedule/clock.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace kernwright::schedule {

/// Sums busy device time in slots of 10 ms. Windows end at the moment of the question: the long one
/// has a second, the short one 10 ms. Not thread-safe.
class Meter {
 public:
  static constexpr Time kSlot = std::chrono::milliseconds(10);
  static constexpr std::size_t kSlots = 100;

  /// `busy` of device time ended at `now`. Time before the beginning of the window is dropped.
  void add(Time now, Time busy) noexcept;
  /// Busy parts of the last second, and of the last 10 ms: 0 to 1. Until a second has passed since
  /// the first add(), the long window is the time since then.
  double second_fraction(Time now) const noexcept;
  double slot_fraction(Time now) const noexcept;
  Time total() const noexcept { return total_; }

 private:
  Time in_window(Time now, Time window) const noexcept;

  struct Slot {
    std::int64_t number = -1;  ///< of its 10 ms since the clock began
    Time busy{0};
  };
  std::array<Slot, kSlots + 1> slots_{};
  Time total_{0};
  Time begin_{-1};
};

}  // namespace kernwright::schedule
