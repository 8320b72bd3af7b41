// Bounds hold for every value between them: random expressions, random intervals, each value tried.
#include "tune/expression_bounds.h"

#include "tune/expression.h"
#include "tune/random.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace kernwright;

namespace {

std::string random_operand(Random& random, int depth);

std::string random_number(Random& random, int depth) {
  static const std::vector<std::string> operators = {"+", "-", "*", "//", "%", "/", "**"};
  const std::string left = random_operand(random, depth - 1);
  const std::string right = random_operand(random, depth - 1);
  switch (random.below(6)) {
    case 0:
      return "min(" + left + ", " + right + ", 3)";
    case 1:
      return "max(" + left + ", abs(" + right + "))";
    case 2:
      return "(" + left + " if " + right + " > 1 else -" + left + ")";
    default:
      return "(" + left + " " + operators[random.below(operators.size())] + " " + right + ")";
  }
}

std::string random_operand(Random& random, int depth) {
  static const std::vector<std::string> leaves = {"a", "b", "c", "2", "5", "0.5", "-3"};
  if (depth <= 0 || random.below(4) == 0) return leaves[random.below(leaves.size())];
  return random_number(random, depth);
}

std::string random_condition(Random& random) {
  static const std::vector<std::string> comparisons = {" < ",  " <= ", " > ",
                                                       " >= ", " == ", " != "};
  const auto compare = [&] {
    return random_operand(random, 2) + comparisons[random.below(6)] + random_operand(random, 2);
  };
  switch (random.below(5)) {
    case 0:
      return "(" + compare() + ") and " + compare();
    case 1:
      return "not (" + compare() + ") or " + compare();
    case 2:
      return random_operand(random, 2) + " in (" + random_operand(random, 1) + ", 4, b)";
    case 3:
      return compare() + comparisons[random.below(6)] + random_operand(random, 1);
    default:
      return random_number(random, 3);
  }
}

struct Range {
  std::int64_t low;
  std::int64_t high;
};

Range random_range(Random& random) {
  const auto low = static_cast<std::int64_t>(random.below(12)) - 5;
  return {low, low + static_cast<std::int64_t>(random.below(4))};
}

/// Calls `visit` with every triple of values of the ranges.
template <typename Visit>
void for_all(const std::vector<Range>& ranges, Visit&& visit) {
  for (std::int64_t a = ranges[0].low; a <= ranges[0].high; ++a)
    for (std::int64_t b = ranges[1].low; b <= ranges[1].high; ++b)
      for (std::int64_t c = ranges[2].low; c <= ranges[2].high; ++c)
        visit(std::vector<Scalar>{Scalar::from(a), Scalar::from(b), Scalar::from(c)});
}

}  // namespace

TEST_CASE("expression bounds: no value lies outside, and what is certain never fails") {
  const std::vector<std::string> names = {"a", "b", "c"};
  Random random(7);
  int decided = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string text = random_condition(random);
    CAPTURE(text);
    const Expression expression = Expression(text).bind(names);
    const std::vector<Range> ranges = {random_range(random), random_range(random),
                                       random_range(random)};
    std::vector<Bounds> slots;
    for (const Range& range : ranges)
      slots.push_back(
          Bounds::from(static_cast<double>(range.low), static_cast<double>(range.high)));
    const Bounds bounds = expression_bounds(expression.tree(), expression.tree().root, slots);
    if (!bounds.known) continue;
    decided += bounds.always_true() || bounds.always_false() ? 1 : 0;
    bool holds = true;
    for_all(ranges, [&](const std::vector<Scalar>& values) {
      const Evaluation result = expression.try_evaluate(values);
      if (result.failure != nullptr) {
        holds = holds && !bounds.certain;
        return;
      }
      const double value = result.value.as_real();
      holds = holds && bounds.low <= value && value <= bounds.high;
      if (bounds.always_true()) holds = holds && is_true(result.value);
      if (bounds.always_false()) holds = holds && !is_true(result.value);
    });
    CHECK(holds);
  }
  CHECK(decided > 300);
}

TEST_CASE("expression bounds: a product of lower ends decides early, however large it grows") {
  const std::vector<std::string> names = {"a", "b", "c"};
  const Expression expression = Expression("a * a * a * b * c <= 1024").bind(names);
  const std::vector<Bounds> slots = {Bounds::from(1e12, 1e18), Bounds::from(1, 5),
                                     Bounds::from(1, 5)};
  CHECK(expression_bounds(expression.tree(), expression.tree().root, slots).always_false());
  const std::vector<Bounds> small = {Bounds::from(1, 2), Bounds::from(1, 5), Bounds::from(1, 5)};
  CHECK(expression_bounds(expression.tree(), expression.tree().root, small).always_true());
  const std::vector<Bounds> text = {Bounds::from(Scalar::from(std::string("x"))),
                                    Bounds::from(1, 5), Bounds::from(1, 5)};
  CHECK_FALSE(expression_bounds(expression.tree(), expression.tree().root, text).known);
}
