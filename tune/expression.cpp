// Binding and evaluation: a walk over the tree.
#include "tune/expression.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/nearest_name.h"
#include "tune/expression_arithmetic.h"

#include <algorithm>
#include <utility>

namespace kernwright {
namespace {

/// One evaluation. The parser bounds the depth of its recursion.
class Evaluator {
 public:
  Evaluator(const ExpressionTree& tree, std::span<const Scalar> slots)
      : tree_(tree), slots_(slots) {}

  Evaluation run(std::uint32_t node) {
    Evaluation result;
    evaluate(node, result.value);
    result.failure = failure_;
    result.position = position_;
    return result;
  }

 private:
  bool fail(const ExpressionNode& node, const char* failure) {
    failure_ = failure;
    position_ = node.position;
    return false;
  }
  bool settle(const ExpressionNode& node, const char* failure) {
    return failure == nullptr || fail(node, failure);
  }

  /// False after a failure.
  bool evaluate(std::uint32_t index, Scalar& result) {
    const ExpressionNode& node = tree_.nodes[index];
    switch (node.operation) {
      case Operation::constant:
        result = tree_.constants[node.first];
        return true;
      case Operation::name:
        result = slots_[node.first];
        return true;
      case Operation::negate:
      case Operation::plus:
      case Operation::invert:
      case Operation::logical_not:
      case Operation::absolute:
      case Operation::to_integer:
      case Operation::to_real:
      case Operation::to_boolean:
        return evaluate(node.first, result) &&
               settle(node, compute_unary(node.operation, result, result));
      case Operation::logical_and:
      case Operation::logical_or:
        if (!evaluate(node.first, result)) return false;
        if (is_true(result) != (node.operation == Operation::logical_and)) return true;
        return evaluate(node.second, result);
      case Operation::conditional: {
        Scalar condition;
        if (!evaluate(tree_.operands[node.first], condition)) return false;
        return evaluate(tree_.operands[node.first + (is_true(condition) ? 1 : 2)], result);
      }
      case Operation::compare:
        return compare(node, result);
      case Operation::minimum:
      case Operation::maximum:
        return extreme(node, result);
      case Operation::list:
        return fail(node, "a list is no value");
      default:
        return binary(node, result);
    }
  }

  bool binary(const ExpressionNode& node, Scalar& result) {
    Scalar left;
    Scalar right;
    return evaluate(node.first, left) && evaluate(node.second, right) &&
           settle(node, compute_binary(node.operation, left, right, result));
  }

  bool extreme(const ExpressionNode& node, Scalar& result) {
    if (!evaluate(tree_.operands[node.first], result)) return false;
    const Comparison better =
        node.operation == Operation::minimum ? Comparison::less : Comparison::greater;
    for (std::uint32_t i = 1; i < node.count; ++i) {
      Scalar other;
      bool is_better = false;
      if (!evaluate(tree_.operands[node.first + i], other)) return false;
      if (!settle(node, compare_scalars(better, other, result, is_better))) return false;
      if (is_better) result = other;
    }
    return true;
  }

  bool compare(const ExpressionNode& node, Scalar& result) {
    Scalar left;
    if (!evaluate(tree_.operands[node.first], left)) return false;
    for (std::uint32_t i = 1; i < node.count; ++i) {
      const Comparison comparison = tree_.comparisons[node.second + i - 1];
      const std::uint32_t operand = tree_.operands[node.first + i];
      Scalar right;
      bool holds = false;
      if (comparison == Comparison::contained || comparison == Comparison::not_contained) {
        if (!contains(node, operand, left, right, holds)) return false;
        holds = holds == (comparison == Comparison::contained);
      } else {
        if (!evaluate(operand, right)) return false;
        if (!settle(node, compare_scalars(comparison, left, right, holds))) return false;
      }
      result = Scalar::from(holds);
      if (!holds) return true;
      left = right;
    }
    return true;
  }

  bool contains(const ExpressionNode& node, std::uint32_t operand, const Scalar& wanted,
                Scalar& container, bool& result) {
    const ExpressionNode& list = tree_.nodes[operand];
    result = false;
    if (list.operation != Operation::list) {
      if (!evaluate(operand, container)) return false;
      if (!container.is_text() || !wanted.is_text())
        return fail(node, "'in' needs a tuple or list after it");
      result = container.text->find(*wanted.text) != std::string::npos;
      return true;
    }
    for (std::uint32_t i = 0; i < list.count; ++i) {
      Scalar item;
      if (!evaluate(tree_.operands[list.first + i], item)) return false;
      result = result || scalars_equal(wanted, item);
    }
    return true;
  }

  const ExpressionTree& tree_;
  std::span<const Scalar> slots_;
  const char* failure_ = nullptr;
  std::uint32_t position_ = 0;
};

}  // namespace

Expression::Expression(std::string_view text)
    : text_(text), tree_(std::make_shared<ExpressionTree>(parse_expression(text_))) {}

Expression Expression::bind(std::span<const std::string> names,
                            const ProblemValues& problem) const {
  auto tree = std::make_shared<ExpressionTree>();
  tree->operands = tree_->operands;
  tree->comparisons = tree_->comparisons;
  tree->names.assign(names.begin(), names.end());
  tree->root = tree_->root;
  const auto keep = [&](const Scalar& value) {
    return value.is_text() ? Scalar::from(tree->strings.emplace_back(*value.text)) : value;
  };
  for (const Scalar& value : tree_->constants) tree->constants.push_back(keep(value));
  for (ExpressionNode node : tree_->nodes) {
    if (node.operation == Operation::name) {
      const std::string& name = tree_->names[node.first];
      const auto slot = std::find(names.begin(), names.end(), name);
      const auto constant = problem.find(name);
      if (slot != names.end()) {
        node.first = static_cast<std::uint32_t>(slot - names.begin());
      } else if (constant != problem.end()) {
        node.operation = Operation::constant;
        node.first = static_cast<std::uint32_t>(tree->constants.size());
        tree->constants.push_back(keep(Scalar::from(constant->second)));
      } else {
        std::vector<std::string> known(names.begin(), names.end());
        for (const auto& entry : problem) known.push_back(entry.first);
        throw NameNotFound(format("\"{}\": there is no parameter or problem value {} (column {}){}",
                                  text_, name, node.position + 1, describe_names(name, known)));
      }
    }
    tree->nodes.push_back(node);
  }
  Expression result(*this);
  result.tree_ = std::move(tree);
  return result;
}

Evaluation Expression::try_evaluate(std::span<const Scalar> slots, std::uint32_t node) const {
  return Evaluator(*tree_, slots).run(node);
}

Scalar Expression::evaluate(std::span<const Scalar> slots) const {
  const Evaluation result = try_evaluate(slots);
  if (result.failure != nullptr) throw InvalidArgument(describe_failure(result));
  return result.value;
}

std::string Expression::describe_failure(const Evaluation& evaluation) const {
  return format("{} in \"{}\" (column {})", evaluation.failure, text_, evaluation.position + 1);
}

}  // namespace kernwright
