// Sets of configurations against sorted lists.
#include "tune/configuration_set.h"

#include "base/errors.h"
#include "tune/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

using namespace kernwright;

namespace {

std::set<Choices> random_list(Random& random, std::size_t parameters, std::size_t count) {
  std::set<Choices> rows;
  for (std::size_t i = 0; i < count; ++i) {
    Choices row;
    for (std::size_t p = 0; p < parameters; ++p)
      row.push_back(static_cast<std::uint32_t>(random.below(2 + p)));
    rows.insert(row);
  }
  return rows;
}

std::size_t differing(const Choices& a, const Choices& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("configuration set: index, membership and order of random lists") {
  Random random(3);
  for (std::size_t parameters = 1; parameters < 7; ++parameters) {
    const std::set<Choices> rows = random_list(random, parameters, 60);
    std::vector<Choices> shuffled(rows.begin(), rows.end());
    shuffled.push_back(shuffled.front());
    random.shuffle(std::span(shuffled));
    const ConfigurationSet set = ConfigurationSet::from(shuffled);
    REQUIRE(set.size() == rows.size());
    std::uint64_t index = 0;
    for (const Choices& row : rows) {
      CHECK(set.at(index) == row);
      CHECK(set.find(row) == index);
      ++index;
    }
    CHECK_THROWS_AS(set.at(index), InvalidArgument);
    for (const Choices& other : random_list(random, parameters, 60)) {
      CHECK(set.find(other).has_value() == rows.contains(other));
      Choices repaired = other;
      CHECK(set.at(set.nearest(repaired)) == repaired);
      CHECK(rows.contains(repaired));
      if (rows.contains(other)) CHECK(differing(other, repaired) == 0);
    }
  }
}

TEST_CASE("configuration set: boxes, limits, choices that occur") {
  const std::vector<Choices> rows = {{0, 0}, {0, 3}, {2, 1}, {2, 3}, {5, 0}};
  const ConfigurationSet set = ConfigurationSet::from(rows);
  CHECK(set.used_choices() == std::vector<Choices>{{0, 2, 5}, {0, 1, 3}});
  const std::vector<Choices> box = {{0, 1, 2}, {0, 3, 9}};
  CHECK(set.within(box, 10) == std::vector<std::uint64_t>{0, 1, 3});
  CHECK(set.within(box, 2) == std::vector<std::uint64_t>{0, 1});
  CHECK(set.find(Choices{0}) == std::nullopt);
  CHECK(set.find(Choices{0, 4000000000U}) == std::nullopt);
}

TEST_CASE("configuration set: equal rests share their nodes") {
  std::vector<Choices> rows;
  for (std::uint32_t a = 0; a < 20; ++a)
    for (std::uint32_t b = 0; b < 20; ++b)
      for (std::uint32_t c = 0; c < 20; ++c) rows.push_back({a, b, c});
  const ConfigurationSet set = ConfigurationSet::from(rows);
  CHECK(set.size() == 8000);
  CHECK(set.node_count() == 4);
  CHECK_THROWS_AS(ConfigurationSet::from({}), InvalidArgument);
  CHECK_THROWS_AS(ConfigurationSet::from(std::vector<Choices>{{1}, {1, 2}}), InvalidArgument);
}
