// Interval arithmetic for operations with monotone pieces; the rest is unknown.
#include "tune/expression_bounds.h"

#include <algorithm>
#include <cmath>

namespace kernwright {
namespace {

constexpr double kExact = 0x1p53;       // up to here integers are doubles
constexpr double kNoOverflow = 0x1p62;  // up to here an integer result fits, however it was rounded
constexpr Bounds kUnknown{};

/// An interval of rounded results, of certain or uncertain operands.
Bounds widened(double low, double high, bool certain) {
  if (std::isnan(low) || std::isnan(high)) return kUnknown;
  if (std::fabs(low) > kExact) low = std::nextafter(low, -INFINITY);
  if (std::fabs(high) > kExact) high = std::nextafter(high, INFINITY);
  return {low, high, true,
          certain && std::fabs(low) < kNoOverflow && std::fabs(high) < kNoOverflow};
}

/// For operations with their extremes at the corners.
template <typename Compute>
Bounds corners(const Bounds& a, const Bounds& b, Compute&& compute) {
  const double values[] = {compute(a.low, b.low), compute(a.low, b.high), compute(a.high, b.low),
                           compute(a.high, b.high)};
  for (const double value : values)
    if (std::isnan(value)) return kUnknown;
  return widened(*std::min_element(values, values + 4), *std::max_element(values, values + 4),
                 a.certain && b.certain);
}

Bounds truth(bool can_be_false, bool can_be_true, bool certain) {
  return {can_be_false ? 0.0 : 1.0, can_be_true ? 1.0 : 0.0, true, certain};
}

bool may_be_true(const Bounds& b) { return !b.known || b.low != 0 || b.high != 0; }
bool may_be_false(const Bounds& b) { return !b.known || (b.low <= 0 && b.high >= 0); }

class BoundsEvaluator {
 public:
  BoundsEvaluator(const ExpressionTree& tree, std::span<const Bounds> slots)
      : tree_(tree), slots_(slots) {}

  Bounds evaluate(std::uint32_t index) const {
    const ExpressionNode& node = tree_.nodes[index];
    switch (node.operation) {
      case Operation::constant:
        return Bounds::from(tree_.constants[node.first]);
      case Operation::name:
        return slots_[node.first];
      case Operation::logical_and:
      case Operation::logical_or:
        return junction(node);
      case Operation::conditional:
        return conditional(node);
      case Operation::compare:
        return comparison(node);
      case Operation::minimum:
      case Operation::maximum:
        return extreme(node);
      case Operation::list:
        return kUnknown;
      case Operation::negate:
      case Operation::plus:
      case Operation::logical_not:
      case Operation::absolute:
      case Operation::to_real:
      case Operation::to_integer:
      case Operation::to_boolean:
      case Operation::invert:
        return unary(node.operation, evaluate(node.first));
      default:
        return binary(node.operation, evaluate(node.first), evaluate(node.second));
    }
  }

 private:
  static Bounds unary(Operation operation, const Bounds& a) {
    if (!a.known) return kUnknown;
    switch (operation) {
      case Operation::negate:
        return {-a.high, -a.low, true, a.certain};
      case Operation::plus:
      case Operation::to_real:
        return a;
      case Operation::logical_not:
        return truth(may_be_true(a), may_be_false(a), a.certain);
      case Operation::to_boolean:
        return truth(may_be_false(a), may_be_true(a), a.certain);
      case Operation::to_integer:
        return {std::trunc(a.low), std::trunc(a.high), true, a.certain};
      case Operation::absolute: {
        const double far = std::max(std::fabs(a.low), std::fabs(a.high));
        const bool crosses = a.low <= 0 && a.high >= 0;
        return {crosses ? 0 : std::min(std::fabs(a.low), std::fabs(a.high)), far, true, a.certain};
      }
      default:
        return kUnknown;
    }
  }

  /// For fractions, the division may round up to a whole number above the exact quotient.
  static Bounds floor_quotient(const Bounds& a, const Bounds& b) {
    Bounds result = corners(a, b, [](double x, double y) { return std::floor(x / y); });
    const auto is_whole = [](const Bounds& bounds) {
      return std::trunc(bounds.low) == bounds.low && std::trunc(bounds.high) == bounds.high;
    };
    if (is_whole(a) && is_whole(b)) return result;
    result.low -= 1;
    result.high += 1;
    return result;
  }

  static Bounds binary(Operation operation, const Bounds& a, const Bounds& b) {
    if (!a.known || !b.known) return kUnknown;
    const bool divides = operation == Operation::divide || operation == Operation::floor_divide ||
                         operation == Operation::modulo;
    if (divides && b.low <= 0 && b.high >= 0) return kUnknown;
    switch (operation) {
      case Operation::add:
        return corners(a, b, [](double x, double y) { return x + y; });
      case Operation::subtract:
        return corners(a, b, [](double x, double y) { return x - y; });
      case Operation::multiply:
        return corners(a, b, [](double x, double y) { return x * y; });
      case Operation::divide:
        return corners(a, b, [](double x, double y) { return x / y; });
      case Operation::floor_divide:
        // Beyond exact integers the quotient's rounding could jump over a whole number.
        if (std::max({std::fabs(a.low), std::fabs(a.high)}) > kExact) return kUnknown;
        return floor_quotient(a, b);
      case Operation::modulo:
        return b.low > 0 ? widened(0, b.high, a.certain && b.certain)
                         : widened(b.low, 0, a.certain && b.certain);
      case Operation::power:
        if (a.low < 1 || b.low < 0) return kUnknown;
        return widened(std::pow(a.low, b.low), std::pow(a.high, b.high), a.certain && b.certain);
      default:
        return kUnknown;
    }
  }

  Bounds junction(const ExpressionNode& node) const {
    const Bounds a = evaluate(node.first);
    const bool is_and = node.operation == Operation::logical_and;
    if (a.known && is_and && !may_be_true(a)) return a;
    if (a.known && !is_and && !may_be_false(a)) return a;
    if (!a.known) return kUnknown;  // it may fail
    const Bounds b = evaluate(node.second);
    const bool certain = a.certain && b.certain;
    if (is_and && !may_be_false(a)) return {b.low, b.high, b.known, certain};
    if (!is_and && !may_be_true(a)) return {b.low, b.high, b.known, certain};
    if (!b.known) return kUnknown;
    if (is_and) return truth(true, may_be_true(b), certain);
    return truth(may_be_false(b), true, certain);
  }

  Bounds conditional(const ExpressionNode& node) const {
    const Bounds condition = evaluate(tree_.operands[node.first]);
    if (!condition.known) return kUnknown;
    const Bounds a = evaluate(tree_.operands[node.first + 1]);
    const Bounds b = evaluate(tree_.operands[node.first + 2]);
    if (!may_be_false(condition)) return {a.low, a.high, a.known, a.certain && condition.certain};
    if (!may_be_true(condition)) return {b.low, b.high, b.known, b.certain && condition.certain};
    return join(a, b, condition.certain);
  }

  static Bounds join(const Bounds& a, const Bounds& b, bool certain) {
    if (!a.known || !b.known) return kUnknown;
    return {std::min(a.low, b.low), std::max(a.high, b.high), true,
            certain && a.certain && b.certain};
  }

  Bounds extreme(const ExpressionNode& node) const {
    Bounds result = evaluate(tree_.operands[node.first]);
    for (std::uint32_t i = 1; i < node.count; ++i) {
      const Bounds other = evaluate(tree_.operands[node.first + i]);
      if (!result.known || !other.known) return kUnknown;
      const bool smaller = node.operation == Operation::minimum;
      const auto pick = [&](double x, double y) {
        return smaller ? std::min(x, y) : std::max(x, y);
      };
      result = {pick(result.low, other.low), pick(result.high, other.high), true,
                result.certain && other.certain};
    }
    return result;
  }

  Bounds comparison(const ExpressionNode& node) const {
    Bounds left = evaluate(tree_.operands[node.first]);
    bool can_be_true = true;
    bool can_be_false = false;
    bool certain = true;
    for (std::uint32_t i = 1; i < node.count; ++i) {
      const std::uint32_t operand = tree_.operands[node.first + i];
      const Comparison comparison = tree_.comparisons[node.second + i - 1];
      Bounds link;
      Bounds right;
      if (tree_.nodes[operand].operation == Operation::list) {
        link = contains(left, tree_.nodes[operand]);
        if (comparison == Comparison::not_contained) link = unary(Operation::logical_not, link);
      } else {
        right = evaluate(operand);
        link = compare(comparison, left, right);
      }
      // NOTE: a link that is never true makes the chain false, independent of later links; earlier
      // ones must not fail.
      if (!link.known) return can_be_true ? kUnknown : truth(true, false, false);
      can_be_true = can_be_true && may_be_true(link);
      can_be_false = can_be_false || may_be_false(link);
      certain = certain && link.certain;
      if (!can_be_true) break;
      left = right;
    }
    return truth(can_be_false, can_be_true, certain);
  }

  static Bounds compare(Comparison comparison, const Bounds& a, const Bounds& b) {
    if (!a.known || !b.known) return kUnknown;
    const bool certain = a.certain && b.certain;
    switch (comparison) {
      case Comparison::less:
        return truth(a.high >= b.low, a.low < b.high, certain);
      case Comparison::less_equal:
        return truth(a.high > b.low, a.low <= b.high, certain);
      case Comparison::greater:
        return truth(a.low <= b.high, a.high > b.low, certain);
      case Comparison::greater_equal:
        return truth(a.low < b.high, a.high >= b.low, certain);
      case Comparison::equal:
      case Comparison::unequal: {
        const bool meet = a.low <= b.high && b.low <= a.high;
        const bool same = meet && a.low == a.high && b.low == b.high;
        return comparison == Comparison::equal ? truth(!same, meet, certain)
                                               : truth(meet, !same, certain);
      }
      default:
        return kUnknown;
    }
  }

  Bounds contains(const Bounds& wanted, const ExpressionNode& list) const {
    Bounds result = truth(true, false, wanted.certain);
    for (std::uint32_t i = 0; i < list.count; ++i) {
      const Bounds item = evaluate(tree_.operands[list.first + i]);
      const Bounds same = compare(Comparison::equal, wanted, item);
      if (!same.known) return kUnknown;
      result = truth(may_be_false(result) && may_be_false(same),
                     may_be_true(result) || may_be_true(same), result.certain && same.certain);
    }
    return result;
  }

  const ExpressionTree& tree_;
  std::span<const Bounds> slots_;
};

}  // namespace

Bounds Bounds::from(const Scalar& value) {
  if (value.is_text()) return kUnknown;
  const double number = value.as_real();
  if (std::isnan(number)) return kUnknown;
  return widened(number, number, true);
}

Bounds expression_bounds(const ExpressionTree& tree, std::uint32_t node,
                         std::span<const Bounds> slots) {
  return BoundsEvaluator(tree, slots).evaluate(node);
}

}  // namespace kernwright
