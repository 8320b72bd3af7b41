// Deadlines, cancellation and signals end waits, each with an error of its own.
#include "jit/compile/compile_wait.h"

#include <doctest/doctest.h>

#include <chrono>

#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

TEST_CASE("compile wait: no limits, no end") {
  CHECK_NOTHROW(check_wait(current_wait_limits(), "k.cu"));
}

TEST_CASE("compile wait: the sooner deadline counts") {
  using std::chrono::milliseconds;
  const WaitLimits soon = WaitLimits{}.within(milliseconds(1));
  CHECK(soon.within(std::chrono::hours(1)).timeout == milliseconds(1));
  CHECK(WaitLimits{}.within(std::chrono::hours(1)).within(milliseconds(1)).timeout ==
        milliseconds(1));
  CHECK_FALSE(WaitLimits{}.within(std::nullopt).deadline);
  CHECK_FALSE(WaitLimits{}.within(milliseconds::max()).deadline);
  CHECK_NOTHROW(check_wait(WaitLimits{}.within(std::chrono::hours(1)), "k.cu"));
  const WaitLimits past = WaitLimits{}.within(milliseconds(0));
  const auto error = thrown_by<Timeout>([&] { check_wait(past, "k.cu"); });
  CHECK(contains(error.what(), "k.cu"));
}

TEST_CASE("compile wait: scopes nest, and a stop flag ends a wait") {
  WaitLimits outer;
  outer.stop = std::make_shared<std::atomic<bool>>(false);
  {
    const WaitScope scope(outer);
    {
      const WaitScope inner((WaitLimits()));
      CHECK_FALSE(current_wait_limits().stop);
    }
    CHECK_NOTHROW(check_wait(current_wait_limits(), "k.cu"));
    *outer.stop = true;
    CHECK_THROWS_AS(check_wait(current_wait_limits(), "k.cu"), Cancelled);
  }
  CHECK_FALSE(current_wait_limits().stop);
}

TEST_CASE("compile wait: a signal is what the check says") {
  set_interrupt_check([] { return true; });
  CHECK_THROWS_AS(check_wait({}, "k.cu"), Interrupted);
  set_interrupt_check([] { return false; });
  CHECK_NOTHROW(check_wait({}, "k.cu"));
  set_interrupt_check(nullptr);
  CHECK_NOTHROW(check_wait({}, "k.cu"));
}
