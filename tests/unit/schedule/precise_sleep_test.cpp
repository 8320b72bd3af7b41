// The timer slack of a thread, inside of a scope and behind it.
#include "schedule/precise_sleep.h"

#include <doctest/doctest.h>

#include <thread>

using kernwright::schedule::PreciseSleep;

namespace {

int slack() { return prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0); }

}  // namespace

TEST_CASE("precise sleep: the slack is small in the scope alone, and on its thread alone") {
  std::thread([] {
    prctl(PR_SET_TIMERSLACK, 70000UL, 0, 0, 0);
    {
      const PreciseSleep outer;
      CHECK(slack() == 1000);
      {
        const PreciseSleep inner;
        CHECK(slack() == 1000);
      }
      CHECK(slack() == 1000);
    }
    CHECK(slack() == 70000);
  }).join();
}
