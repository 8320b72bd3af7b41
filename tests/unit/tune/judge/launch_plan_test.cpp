// The launches of a judgement: their number, sizes, contents and orders.
#include "tune/judge/launch_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

using namespace kernwright;

TEST_CASE("launch plan: further launches have every size and every kind of contents") {
  const std::vector<int> others{1, 2, 3, 4};
  std::set<std::size_t> counts;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const auto plan = further_launches(seed, 1, 4, others);
    counts.insert(plan.size());
    CHECK(plan.size() >= 8);
    CHECK(plan.size() <= 15);
    std::set<Fill> fills;
    int small = 0, timed = 0, own_orders = 0;
    bool has_timed_in_own_order = false;
    for (const PlannedLaunch& each : plan) {
      fills.insert(each.setting.fill);
      small += each.number == 1 ? 1 : 0;
      timed += each.number == 4 ? 1 : 0;
      own_orders += each.setting.schedule ? 1 : 0;
      has_timed_in_own_order =
          has_timed_in_own_order || (each.number == 4 && each.setting.schedule);
      CHECK(std::count(others.begin(), others.end(), each.number) == 1);
    }
    CHECK(fills.size() >= 5);
    CHECK(small >= 3);
    CHECK(timed >= 3);
    CHECK(own_orders >= 3);
    CHECK(has_timed_in_own_order);
    CHECK(plan[2].number == plan[1].number);
    CHECK_MESSAGE(plan[2].input_seed == (plan[1].input_seed ^ 1U), "many elements alike");
  }
  CHECK(counts.size() > 4);
}

TEST_CASE("launch plan: the same seed draws the same launches") {
  const auto one = further_launches(7, 0, 1, {0, 1}), other = further_launches(7, 0, 1, {0, 1});
  REQUIRE(one.size() == other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    CHECK(one[i].number == other[i].number);
    CHECK(one[i].input_seed == other[i].input_seed);
    CHECK(one[i].setting.fill == other[i].setting.fill);
    CHECK(one[i].setting.schedule == other[i].setting.schedule);
  }
}

TEST_CASE("launch plan: neighbouring cases have other contents") {
  std::set<Fill> fills;
  for (int number = 0; number < 8; ++number) fills.insert(first_setting(3, number).fill);
  CHECK(fills.size() == kFills);
}

TEST_CASE("launch plan: costly launches are fewer, but never fewer than the least") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const std::uint64_t cheap = repetitions(kSmallRepetition, seed, 10);
    CHECK(cheap >= 32);
    CHECK(cheap < 512);
    CHECK(repetitions(kSmallRepetition, seed, 1e5) <= 40);
    CHECK(repetitions(kSmallRepetition, seed, 1e5) >= 32);
    CHECK(repetitions(kSmallRepetition, seed, 1e9) == 32);
    CHECK(repetitions(kTimedRepetition, seed, 1e9) == 8);
    CHECK(repetitions(kTimedRepetition, seed, 10) < 64);
    CHECK(repetitions(kSmallRepetition, seed, std::nullopt) == 32);
  }
}

TEST_CASE("launch plan: other sizes come of all cheap cases, with every kind of contents") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const auto plan = sized_launches(seed, {2, 3, 5});
    CHECK(plan.size() == 64);
    std::map<int, std::vector<std::uint64_t>> inputs;
    std::set<Fill> fills;
    for (const PlannedLaunch& each : plan) {
      inputs[each.number].push_back(each.input_seed);
      fills.insert(each.setting.fill);
    }
    CHECK(inputs.size() == 3);
    for (const int number : {2, 3, 5}) {
      CHECK(inputs[number].size() >= 21);
      CHECK(inputs[number].front() % 2 == 0);
      for (std::size_t i = 1; i < inputs[number].size(); ++i) {
        CHECK(inputs[number][i] == inputs[number][i - 1] + 2);
      }
    }
    CHECK(fills.size() == kFills);
  }
  CHECK(sized_launches(1, {}).empty());
}

TEST_CASE("launch plan: first launches of modules have other orders and contents") {
  const auto plan = first_launches(5, 4, {1, 2, 3, 4});
  std::set<Fill> fills;
  int timed = 0;
  for (const PlannedLaunch& each : plan) {
    CHECK(each.setting.schedule);
    fills.insert(each.setting.fill);
    timed += each.number == 4 ? 1 : 0;
  }
  CHECK(fills.size() == plan.size());
  CHECK_MESSAGE(timed >= 6, "one order may happen to be right");
}
