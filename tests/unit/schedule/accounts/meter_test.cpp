// Busy time in windows of a second and of 10 ms, on a clock of the test.
#include "schedule/accounts/meter.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <random>
#include <utility>
#include <vector>

using namespace kernwright;
using namespace kernwright::schedule;
using namespace std::chrono_literals;

TEST_CASE("meter: nothing, then a half, then nothing again") {
  Meter meter;
  CHECK(meter.second_fraction(5s) == 0);
  for (Time now = 1s; now <= 3s; now += 10ms) meter.add(now, 5ms);
  CHECK(meter.second_fraction(3s) == doctest::Approx(0.5).epsilon(0.01));
  CHECK(meter.slot_fraction(3s) == doctest::Approx(0.5));
  CHECK(meter.second_fraction(3500ms) == doctest::Approx(0.25).epsilon(0.03));
  CHECK(meter.second_fraction(5s) == 0);
  CHECK(meter.total() == 201 * 5ms);
}

TEST_CASE("meter: work longer than a slot lies in the slots in which it ran") {
  Meter meter;
  meter.add(2s, 300ms);
  CHECK(meter.slot_fraction(2s) == doctest::Approx(1));
  CHECK(meter.slot_fraction(1750ms) == doctest::Approx(1));
  meter.add(4s, 5s);  // longer than the window
  CHECK(meter.second_fraction(4s) == doctest::Approx(1));
}

TEST_CASE("meter: a slot that the window cuts counts in part") {
  Meter meter;
  meter.add(1010ms, 10ms);
  CHECK(meter.slot_fraction(1010ms) == doctest::Approx(1));
  CHECK(meter.slot_fraction(1015ms) == doctest::Approx(0.5));
  CHECK(meter.slot_fraction(1018ms) == doctest::Approx(0.2));
}

TEST_CASE("meter: the first second counts from the first work") {
  Meter meter;
  meter.add(10s, 20ms);
  CHECK(meter.second_fraction(10s) == doctest::Approx(1));
  CHECK(meter.second_fraction(10s + 80ms) == doctest::Approx(0.2));
}

TEST_CASE("meter: agrees with a plain sum of intervals") {
  std::mt19937 random(7);
  Meter meter;
  std::vector<std::pair<Time, Time>> intervals;
  Time now = 1s;
  for (int i = 0; i < 3000; ++i) {
    const Time busy = std::chrono::microseconds(random() % 3000);
    now += busy + std::chrono::microseconds(random() % 2000);
    intervals.emplace_back(now - busy, now);
    meter.add(now, busy);
  }
  Time expected{0};
  for (const auto& [begin, end] : intervals) {
    expected += std::max(Time(0), end - std::max(begin, now - 1s));
  }
  CHECK(meter.second_fraction(now) == doctest::Approx(seconds(expected)).epsilon(0.02));
}

TEST_CASE("clock: goes forward only") {
  ManualClock clock;
  clock.advance(3ms);
  CHECK(clock.now() == Time(3ms));
  CHECK_THROWS_AS(clock.advance(-1ns), InvalidArgument);
  CHECK(clock.now() == Time(3ms));
}
