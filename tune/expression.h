// Expressions over parameters and problem sizes: "block * tile <= 1024 and n % tile == 0".
#pragma once

#include "tune/expression_tree.h"
#include "tune/value.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// Names with fixed values for a whole space: sizes of the problem.
using ProblemValues = std::map<std::string, Value, std::less<>>;

/// The result of one evaluation: a value, or the reason for a failure.
struct Evaluation {
  Scalar value;
  const char* failure = nullptr;  ///< "division by zero"; null when there is a value
  std::uint32_t position = 0;     ///< of the failure in the text, from 0
};

/// A part of Python's expressions with Python's meaning: integers (of 64 bits; an overflow is a
/// failure), floats, strings, bools; + - * / // % ** & | ^ << >> ~; chains of comparisons; `in`
/// with a tuple or list; and, or, not; `a if c else b`; min, max, abs, int, float, bool. Nothing
/// else: no attribute, no subscript, no other call.
///
/// Immutable; any thread may evaluate it.
class Expression {
 public:
  /// Throws InvalidArgument with the column of the mistake.
  explicit Expression(std::string_view text);

  const std::string& text() const { return text_; }
  /// All names in it, in order of appearance.
  const std::vector<std::string>& names() const { return tree_->names; }

  /// The same expression with its names bound: to slots, the places in `names`, or to the values of
  /// the problem. Slots come first. Throws NameNotFound for an unknown name.
  Expression bind(std::span<const std::string> names, const ProblemValues& problem = {}) const;

  /// The value for the values of the slots, in the order of bind()'s names (an unbound expression
  /// has its own names() as slots). Strings in the result belong to the expression or to the slots.
  /// Throws InvalidArgument for errors in Python, and beyond 64 bits.
  Scalar evaluate(std::span<const Scalar> slots) const;
  /// The same without an exception. Some 10 ns for each operation.
  Evaluation try_evaluate(std::span<const Scalar> slots) const {
    return try_evaluate(slots, tree_->root);
  }
  /// Evaluates one node of the tree.
  Evaluation try_evaluate(std::span<const Scalar> slots, std::uint32_t node) const;

  const ExpressionTree& tree() const { return *tree_; }
  /// "division by zero in "m % n" (column 3)".
  std::string describe_failure(const Evaluation& evaluation) const;

 private:
  std::string text_;
  std::shared_ptr<const ExpressionTree> tree_;
};

}  // namespace kernwright
