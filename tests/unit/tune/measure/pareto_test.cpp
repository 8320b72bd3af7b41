// The front against the definition, row by row.
#include "tune/measure/pareto.h"

#include "base/errors.h"
#include "tune/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace kernwright;

namespace {

std::vector<std::size_t> front_by_definition(const std::vector<std::vector<double>>& columns) {
  std::vector<std::size_t> front;
  const std::size_t count = columns[0].size();
  for (std::size_t row = 0; row < count; ++row) {
    bool is_beaten = false;
    for (std::size_t other = 0; other < count; ++other) {
      bool nowhere_larger = true, somewhere_smaller = false;
      for (const auto& column : columns) {
        nowhere_larger = nowhere_larger && column[other] <= column[row];
        somewhere_smaller = somewhere_smaller || column[other] < column[row];
      }
      is_beaten = is_beaten || (nowhere_larger && somewhere_smaller);
    }
    if (!is_beaten) front.push_back(row);
  }
  return front;
}

}  // namespace

TEST_CASE("pareto front: as defined, with ties, for one to four columns") {
  Random random(3);
  for (std::size_t width = 1; width <= 4; ++width) {
    for (const int count : {1, 2, 17, 200}) {
      std::vector<std::vector<double>> columns(width);
      for (auto& column : columns) {
        for (int i = 0; i < count; ++i) column.push_back(static_cast<double>(random.below(12)));
      }
      CHECK(pareto_front(columns) == front_by_definition(columns));
    }
  }
}

TEST_CASE("pareto front: no row, NaN, infinity, columns that do not match") {
  const std::vector<std::vector<double>> empty(2);
  CHECK(pareto_front(empty).empty());
  const std::vector<std::vector<double>> odd = {{NAN, 1, INFINITY, -INFINITY}, {0, 1, 1, 2}};
  CHECK(pareto_front(odd) == std::vector<std::size_t>{1, 3});
  const std::vector<std::vector<double>> uneven = {{1, 2}, {1}};
  CHECK_THROWS_AS(pareto_front(uneven), InvalidArgument);
  CHECK_THROWS_AS(pareto_front({}), InvalidArgument);
}
