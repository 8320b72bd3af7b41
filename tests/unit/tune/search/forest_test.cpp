// The forest learns a step and a slope, and knows where it was never taught.
#include "tune/search/forest.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace kernwright;

TEST_CASE("forest: a function of two of three features") {
  Random random(11);
  std::vector<float> rows;
  std::vector<double> targets;
  const auto target = [](const float* row) { return (row[0] > 0.5F ? 3.0 : 0.0) + row[2]; };
  for (int i = 0; i < 400; ++i) {
    for (int j = 0; j < 3; ++j) rows.push_back(static_cast<float>(random.uniform()));
    targets.push_back(target(&rows[rows.size() - 3]));
  }
  Forest forest;
  CHECK(forest.empty());
  forest.fit(rows, 3, targets, {}, random);
  double error = 0;
  for (int i = 0; i < 200; ++i) {
    const std::vector<float> row = {static_cast<float>(random.uniform()),
                                    static_cast<float>(random.uniform()),
                                    static_cast<float>(random.uniform())};
    error += std::fabs(forest.predict(row).mean - target(row.data())) / 200;
  }
  CHECK(error < 0.2);
}

TEST_CASE("forest: one sample, equal samples and no feature give the mean") {
  Random random(1);
  Forest forest;
  const std::vector<float> rows = {1, 1, 1};
  const std::vector<double> targets = {2, 4, 6};
  forest.fit(std::span(rows).first(1), 1, std::span(targets).first(1), {}, random);
  CHECK(forest.predict(rows).mean == doctest::Approx(2));
  CHECK(forest.predict(rows).deviation == doctest::Approx(0));
  forest.fit(rows, 1, targets, {.trees = 400}, random);
  CHECK(forest.predict(rows).mean == doctest::Approx(4).epsilon(0.05));
  CHECK(forest.predict(rows).deviation > 0.3);
  forest.fit({}, 0, targets, {.bootstrap = false}, random);
  CHECK(forest.predict({}).mean == doctest::Approx(4));
}
