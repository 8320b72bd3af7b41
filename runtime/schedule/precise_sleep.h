// Sleeps of a few microseconds that take no longer.
#pragma once

#include <sys/prctl.h>

#include <chrono>
#include <thread>

namespace kernwright::schedule {

/// While one lives, sleeps of this thread end within some microseconds of their time: Linux may
/// put an end off by the thread's timer slack, 50 us unless it was set.
class PreciseSleep {
 public:
  PreciseSleep() noexcept : before_(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) {
    constexpr unsigned long kNanoseconds = 1000;
    prctl(PR_SET_TIMERSLACK, kNanoseconds, 0, 0, 0);
  }
  ~PreciseSleep() {
    if (before_ > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before_), 0, 0, 0);
  }
  /// Between questions whether a wait is over, counted from 0: most waits end within a few kernels.
  static void pause(unsigned round) {
    if (round < 50) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(5));
    }
  }
  PreciseSleep(const PreciseSleep&) = delete;
  PreciseSleep& operator=(const PreciseSleep&) = delete;

 private:
  const int before_;  ///< nanoseconds
};

}  // namespace kernwright::schedule
