// What is learnt of compile times, and the deadlines made of it.
#include "tune/session/compile_estimate.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace kernwright;

namespace {

Space square() {
  Space space;
  for (const char* name : {"a", "b"}) {
    std::vector<Value> values;
    for (std::int64_t i = 0; i < 6; ++i) values.emplace_back(i);
    space.add(name, values);
  }
  return space;
}

/// Each step of `a` doubles it.
double truth(const Choices& at) { return 0.01 * std::pow(2.0, at[0]) * (at[1] == 3 ? 3 : 1); }

}  // namespace

TEST_CASE("compile estimate: factors of parameters are learnt from half of the space") {
  const Space space = square();
  CompileEstimate estimate(space);
  CHECK_FALSE(estimate.predict({0, 0}));
  for (std::uint32_t a = 0; a < 6; ++a)
    for (std::uint32_t b = a % 2; b < 6; b += 2) estimate.learn({a, b}, truth({a, b}));
  for (std::uint32_t a = 1; a < 6; ++a) {
    for (std::uint32_t b = 0; b < 6; ++b) {
      CAPTURE(a);
      CAPTURE(b);
      const double ratio = *estimate.predict({a, b}) / truth({a, b});
      CHECK(ratio > 0.4);
      CHECK(ratio < 2.5);
    }
  }
  CHECK(*estimate.predict({5, 0}) > 4 * *estimate.predict({1, 0}));
}

TEST_CASE("compile estimate: deadlines are wide at first, then a factor above what was learnt") {
  const Space space = square();
  CompileEstimate estimate(space);
  const CompileDeadlines deadlines{.factor = 5, .floor_s = 0.2, .first_s = 40};
  CHECK(estimate.deadline({0, 0}, deadlines) == 40);
  CHECK(estimate.typical() == 0);
  CompileEstimate few(space);
  for (std::uint32_t b = 0; b < 5; ++b) few.learn({0, b}, 0.5);
  CHECK(few.deadline({1, 5}, deadlines) == doctest::Approx(2.5));
  CHECK(few.typical() == doctest::Approx(0.5));
  for (std::uint32_t b = 0; b < 6; ++b) {
    estimate.learn({0, b}, 0.001);
    estimate.learn({5, b}, 1);
  }
  CHECK(estimate.deadline({0, 0}, deadlines) == 0.2);  // the floor
  CHECK(estimate.deadline({5, 0}, deadlines) > 1);
  CHECK(estimate.deadline({5, 0}, deadlines) < 40);
}

TEST_CASE("compile estimate: no time at all is no trouble") {
  const Space space = square();
  CompileEstimate estimate(space);
  for (std::uint32_t b = 0; b < 6; ++b) estimate.learn({0, b}, 0);
  CHECK(std::isfinite(*estimate.predict({0, 0})));
}
