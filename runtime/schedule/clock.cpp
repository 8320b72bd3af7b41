// The clock of tests.
#include "schedule/clock.h"

#include "base/errors.h"
#include "base/format.h"

namespace kernwright::schedule {

void ManualClock::advance(Time by) {
  if (by < Time(0)) {
    throw InvalidArgument(format("a clock cannot go back: advance by {} s", seconds(by)));
  }
  now_.fetch_add(by.count(), std::memory_order_relaxed);
}

}  // namespace kernwright::schedule
