// Slots of busy time.
#include "schedule/accounts/meter.h"

#include <algorithm>

namespace kernwright::schedule {

void Meter::add(Time now, Time busy) noexcept {
  busy = std::max(busy, Time(0));
  total_ += busy;
  if (begin_ < Time(0)) begin_ = std::max(now - busy, Time(0));
  // Work of more than a slot is spread over the slots in which it ran.
  Time end = now;
  for (std::size_t i = 0; busy > Time(0) && i <= kSlots && end > Time(0); ++i) {
    const std::int64_t number = (end - Time(1)) / kSlot;
    const Time part = std::min(busy, end - number * kSlot);
    Slot& slot = slots_[static_cast<std::size_t>(number) % slots_.size()];
    if (slot.number < number) slot = {number, Time(0)};
    if (slot.number == number) slot.busy += part;
    busy -= part;
    end = number * kSlot;
  }
}

Time Meter::in_window(Time now, Time window) const noexcept {
  const Time from = now - window;
  Time sum{0};
  for (const Slot& slot : slots_) {
    const Time begin = slot.number * kSlot;
    const Time end = begin + kSlot;
    if (slot.number < 0 || end <= from || begin >= now) continue;
    const Time inside = std::min(end, now) - std::max(begin, from);
    // A slot cut by the window counts as evenly busy; the current slot is no longer than until now.
    const Time whole = std::min(end, now) - begin;
    sum += inside >= whole ? slot.busy : slot.busy * inside.count() / whole.count();
  }
  return sum;
}

double Meter::second_fraction(Time now) const noexcept {
  if (begin_ < Time(0)) return 0;
  const Time window = std::clamp<Time>(now - begin_, kSlot, kSlot * int{kSlots});
  return std::min(1.0, seconds(in_window(now, window)) / seconds(window));
}

double Meter::slot_fraction(Time now) const noexcept {
  return std::min(1.0, seconds(in_window(now, kSlot)) / seconds(kSlot));
}

}  // namespace kernwright::schedule
