// Every search: no repeats, the whole space at last, late results, seeds, failures.
#include "tune/search/strategy.h"

#include "base/errors.h"
#include "tune/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <set>
#include <string>
#include <vector>

using namespace kernwright;

namespace {

Space bowl_space(std::int64_t values) {
  Space space;
  for (const char* name : {"x", "y", "z"}) {
    std::vector<Value> all;
    for (std::int64_t i = 0; i < values; ++i) all.emplace_back(i);
    space.add(name, all);
  }
  space.require("(x + y) % 3 != 1 and x + z < 2 * y + 12");
  return space;
}

/// Least at (5, 3, 7); what is far in x fails.
std::optional<double> bowl_cost(const Space& space, std::uint64_t index) {
  const Choices at = space.configurations().at(index);
  const double x = at[0], y = at[1], z = at[2];
  if (x > 10) return std::nullopt;
  return 1.0 + (x - 5) * (x - 5) + 2 * std::fabs(y - 3) + std::fabs(z - 7) * (1 + 0.1 * x);
}

std::vector<std::uint64_t> run_search(Strategy& strategy, std::size_t evaluations,
                                      std::size_t batch, std::size_t late) {
  std::vector<std::uint64_t> order;
  std::deque<std::uint64_t> flying;
  while (order.size() < evaluations) {
    const std::vector<std::uint64_t> asked = strategy.ask(batch);
    for (const std::uint64_t index : asked) {
      order.push_back(index);
      flying.push_front(index);  // the last comes back first
    }
    while (flying.size() > (asked.empty() ? 0 : late)) {
      strategy.tell(flying.front(), bowl_cost(strategy.space(), flying.front()));
      flying.pop_front();
    }
    if (asked.empty()) break;
  }
  return order;
}

double least_cost(const Space& space) {
  double least = std::numeric_limits<double>::infinity();
  for (std::uint64_t i = 0; i < space.size(); ++i)
    least = std::min(least, bowl_cost(space, i).value_or(least));
  return least;
}

}  // namespace

TEST_CASE("strategy: each visits every configuration once, whatever is late") {
  const Space space = bowl_space(6);
  for (const std::string_view name : strategy_names()) {
    CAPTURE(name);
    for (const std::size_t late : {0, 11}) {
      const auto strategy = make_strategy(name, space, {.seed = 3});
      const std::vector<std::uint64_t> order = run_search(*strategy, 10000, 5, late);
      CHECK(order.size() == space.size());
      CHECK(std::set<std::uint64_t>(order.begin(), order.end()).size() == space.size());
      CHECK(strategy->ask(3).empty());
      CHECK(strategy->pending() == 0);
      CHECK(strategy->best_cost() == least_cost(space));
    }
  }
}

TEST_CASE("strategy: the same seed and calls give the same proposals") {
  const Space space = bowl_space(14);
  for (const std::string_view name : strategy_names()) {
    CAPTURE(name);
    const auto run = [&](std::uint64_t seed) {
      const auto strategy = make_strategy(name, space, {.seed = seed});
      return run_search(*strategy, 90, 4, 6);
    };
    CHECK(run(1) == run(1));
    if (name != "brute_force") CHECK(run(1) != run(2));
  }
}

TEST_CASE("strategy: those that learn beat chance") {
  const Space space = bowl_space(16);
  const double least = least_cost(space);
  const auto mean_regret = [&](std::string_view name) {
    double sum = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const auto strategy = make_strategy(name, space, {.seed = seed});
      run_search(*strategy, 120, 4, 3);
      sum += strategy->best_cost().value_or(1e3) - least;
    }
    return sum / 8;
  };
  const double chance = mean_regret("random");
  for (const std::string_view name : strategy_names()) {
    if (name == "random" || name == "brute_force") continue;
    CAPTURE(name);
    CHECK(mean_regret(name) < 0.6 * chance);
  }
}

TEST_CASE("strategy: warm starts come first, foreign results are learnt from") {
  const Space space = bowl_space(8);
  for (const std::string_view name : strategy_names()) {
    CAPTURE(name);
    const auto strategy = make_strategy(name, space, {.seed = 0, .initial = {7, 3, 7, 20}});
    strategy->tell(3, 5.0);
    CHECK(strategy->told() == 1);
    CHECK(strategy->ask(2) == std::vector<std::uint64_t>{7, 20});
    CHECK(strategy->pending() == 2);
    strategy->tell(7, std::nullopt);
    strategy->tell(20, 4.0);
    CHECK(strategy->best() == 20U);
    strategy->tell(20, 6.0);  // measured again
    CHECK(strategy->best() == 3U);
    for (const std::uint64_t index : strategy->ask(40)) CHECK((index != 3 && index != 7));
  }
}

TEST_CASE("strategy: failures alone, huge, negative and equal costs") {
  const Space space = bowl_space(8);
  for (const std::string_view name : strategy_names()) {
    CAPTURE(name);
    for (const double scale : {std::numeric_limits<double>::infinity(), -1.0, 0.0, 1e300}) {
      const auto strategy = make_strategy(name, space, {.seed = 5});
      std::set<std::uint64_t> seen;
      for (int round = 0; round < 25; ++round)
        for (const std::uint64_t index : strategy->ask(4)) {
          CHECK(seen.insert(index).second);
          strategy->tell(index, scale * static_cast<double>(1 + index));
        }
      CHECK(seen.size() == 100);
      CHECK(strategy->best().has_value() == std::isfinite(scale));
    }
    const auto strategy = make_strategy(name, space);
    CHECK_THROWS_AS(strategy->tell(0, std::nan("")), InvalidArgument);
    CHECK_THROWS_AS(strategy->tell(space.size(), 1.0), InvalidArgument);
    CHECK_THROWS_AS(make_strategy(name, space, {.initial = {space.size()}}), InvalidArgument);
  }
  CHECK_THROWS_AS(make_strategy("gredy_ils", space), NameNotFound);
}

TEST_CASE("strategy: a space of one configuration, and one too large to list") {
  Space one;
  one.add("x", {std::int64_t{4}});
  Space huge;
  for (int i = 0; i < 12; ++i) {
    std::vector<Value> values;
    for (std::int64_t v = 0; v < 30; ++v) values.emplace_back(v);
    huge.add("p" + std::to_string(i), values);
  }
  for (const std::string_view name : strategy_names()) {
    CAPTURE(name);
    const auto single = make_strategy(name, one);
    CHECK(single->ask(5) == std::vector<std::uint64_t>{0});
    single->tell(0, 1.0);
    CHECK(single->ask(5).empty());
    const auto strategy = make_strategy(name, huge, {.seed = 1});
    for (int round = 0; round < 12; ++round)
      for (const std::uint64_t index : strategy->ask(5)) {
        const Choices at = huge.configurations().at(index);
        strategy->tell(index, 1.0 + at[0] + at[5]);
      }
    CHECK(strategy->told() == 60);
  }
}
