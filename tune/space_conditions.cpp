// Splits restrictions into conditions, orders the parameters, and finds the decided parts by level.
#include "tune/space_conditions.h"

#include <algorithm>
#include <numeric>

namespace kernwright {
namespace {

// A search with less than so many steps is not worth another order than the parameters' own.
constexpr double kManySteps = 5e7;

std::vector<std::uint32_t> child_nodes(const ExpressionTree& tree, const ExpressionNode& node) {
  switch (node.operation) {
    case Operation::constant:
    case Operation::name:
      return {};
    case Operation::list:
    case Operation::conditional:
    case Operation::compare:
    case Operation::minimum:
    case Operation::maximum:
      return {tree.operands.begin() + node.first, tree.operands.begin() + node.first + node.count};
    case Operation::negate:
    case Operation::plus:
    case Operation::invert:
    case Operation::logical_not:
    case Operation::absolute:
    case Operation::to_integer:
    case Operation::to_real:
    case Operation::to_boolean:
      return {node.first};
    default:
      return {node.first, node.second};
  }
}

void collect_parameters(const ExpressionTree& tree, std::uint32_t index,
                        std::vector<std::uint32_t>& found) {
  const ExpressionNode& node = tree.nodes[index];
  if (node.operation == Operation::name) found.push_back(node.first);
  for (const std::uint32_t child : child_nodes(tree, node)) collect_parameters(tree, child, found);
}

std::vector<std::uint32_t> parameters_in(const ExpressionTree& tree, std::uint32_t root) {
  std::vector<std::uint32_t> found;
  collect_parameters(tree, root, found);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// The largest parts below `index` with all their parameters decided; no constants.
void collect_decided(const ExpressionTree& tree, std::uint32_t index,
                     const std::vector<bool>& decided, std::vector<std::uint32_t>& parts) {
  const std::vector<std::uint32_t> inside = parameters_in(tree, index);
  if (inside.empty()) return;
  const auto is_decided = [&](std::uint32_t parameter) { return decided[parameter]; };
  const ExpressionNode& node = tree.nodes[index];
  if (node.operation != Operation::list && std::all_of(inside.begin(), inside.end(), is_decided)) {
    parts.push_back(index);
    return;
  }
  if (std::none_of(inside.begin(), inside.end(), is_decided)) return;
  for (const std::uint32_t child : child_nodes(tree, node))
    collect_decided(tree, child, decided, parts);
}

/// The operands of a chain of `and` at the root.
void split(const ExpressionTree& tree, std::uint32_t index, std::vector<std::uint32_t>& parts) {
  const ExpressionNode& node = tree.nodes[index];
  if (node.operation != Operation::logical_and) {
    parts.push_back(index);
    return;
  }
  split(tree, node.first, parts);
  split(tree, node.second, parts);
}

/// An estimate of the prefixes seen by a search in some order: at each level the values of the
/// parameters needed by open conditions, times those of the level's own.
class StepEstimate {
 public:
  StepEstimate(std::span<const TuningParameter> parameters,
               const std::vector<SpaceCondition>& conditions)
      : parameters_(parameters), conditions_(conditions), placed_(parameters.size()) {}

  /// The steps of the level where `next` gets its value, after the placed parameters.
  double steps(std::uint32_t next) const {
    double product = static_cast<double>(parameters_[next].values.size());
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (placed_[i] && is_needed(i)) product *= static_cast<double>(parameters_[i].values.size());
    return product;
  }
  void place(std::uint32_t parameter) { placed_[parameter] = true; }

 private:
  /// Whether an open condition has the parameter.
  bool is_needed(std::size_t parameter) const {
    return std::any_of(conditions_.begin(), conditions_.end(), [&](const SpaceCondition& c) {
      const auto& condition_parameters = c.parameters;
      return std::find(condition_parameters.begin(), condition_parameters.end(), parameter) !=
                 condition_parameters.end() &&
             std::any_of(condition_parameters.begin(), condition_parameters.end(),
                         [&](std::uint32_t p) { return !placed_[p]; });
    });
  }

  std::span<const TuningParameter> parameters_;
  const std::vector<SpaceCondition>& conditions_;
  std::vector<bool> placed_;
};

std::vector<std::uint32_t> choose_order(std::span<const TuningParameter> parameters,
                                        const std::vector<SpaceCondition>& conditions) {
  std::vector<std::uint32_t> declared_order(parameters.size());
  std::iota(declared_order.begin(), declared_order.end(), 0U);
  double declared_steps = 0;
  StepEstimate in_order(parameters, conditions);
  for (const std::uint32_t parameter : declared_order) {
    declared_steps += in_order.steps(parameter);
    in_order.place(parameter);
  }
  if (declared_steps < kManySteps) return declared_order;
  // Always the parameter with the smallest next level.
  std::vector<std::uint32_t> rest = declared_order;
  std::vector<std::uint32_t> order;
  double steps = 0;
  StepEstimate greedy(parameters, conditions);
  while (!rest.empty()) {
    const auto cost = [&](std::uint32_t candidate) {
      StepEstimate after = greedy;
      after.place(candidate);
      const std::uint32_t other = rest.front() == candidate ? rest.back() : rest.front();
      return greedy.steps(candidate) + after.steps(other);
    };
    const auto best =
        std::min_element(rest.begin(), rest.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return cost(a) < cost(b); });
    steps += greedy.steps(*best);
    greedy.place(*best);
    order.push_back(*best);
    rest.erase(best);
  }
  return steps * 4 < declared_steps ? order : declared_order;
}

}  // namespace

SpaceConditions::SpaceConditions(std::span<const TuningParameter> parameters,
                                 std::span<const Restriction> restrictions,
                                 const ProblemValues& problem) {
  std::vector<std::string> names;
  for (const TuningParameter& parameter : parameters) names.push_back(parameter.name);
  for (const Restriction& restriction : restrictions) take_apart(restriction, names, problem);
  order = choose_order(parameters, all);
  arrange(parameters);
}

void SpaceConditions::take_apart(const Restriction& restriction, std::span<const std::string> names,
                                 const ProblemValues& problem) {
  if (restriction.predicate) {
    SpaceCondition condition{.label = restriction.label, .predicate = &*restriction.predicate};
    for (const std::string& name : restriction.predicate->parameters)
      condition.parameters.push_back(
          static_cast<std::uint32_t>(std::find(names.begin(), names.end(), name) - names.begin()));
    all.push_back(std::move(condition));
    return;
  }
  const Expression& bound = expressions_.emplace_back(restriction.expression->bind(names, problem));
  std::vector<std::uint32_t> parts;
  split(bound.tree(), bound.tree().root, parts);
  for (const std::uint32_t part : parts)
    all.push_back({.label = restriction.label,
                   .expression = &bound,
                   .node = part,
                   .parameters = parameters_in(bound.tree(), part)});
}

void SpaceConditions::arrange(std::span<const TuningParameter> parameters) {
  const std::size_t levels = order.size();
  complete.resize(levels);
  partial.resize(levels);
  open.resize(levels);
  shares.assign(levels, false);
  std::vector<std::size_t> levels_by_parameter(levels);
  for (std::size_t level = 0; level < levels; ++level) levels_by_parameter[order[level]] = level;
  for (SpaceCondition& condition : all) {
    condition.decided.resize(levels);
    for (const std::uint32_t parameter : condition.parameters)
      condition.last_level = std::max(condition.last_level, levels_by_parameter[parameter]);
  }
  std::vector<bool> decided(levels);
  for (std::size_t level = 0; level < levels; ++level) {
    for (SpaceCondition& condition : all) {
      const auto& condition_parameters = condition.parameters;
      const auto is_decided = [&](std::uint32_t p) { return static_cast<bool>(decided[p]); };
      const bool here = std::find(condition_parameters.begin(), condition_parameters.end(),
                                  order[level]) != condition_parameters.end();
      if (here && condition.last_level == level) complete[level].push_back(&condition);
      if (here && condition.last_level != level) partial[level].push_back(&condition);
      if (condition_parameters.empty() || condition.last_level < level ||
          std::none_of(condition_parameters.begin(), condition_parameters.end(), is_decided))
        continue;
      open[level].push_back(&condition);
      std::vector<std::uint32_t>& parts = condition.decided[level];
      if (condition.predicate == nullptr) {
        collect_decided(condition.expression->tree(), condition.node, decided, parts);
      } else {
        std::copy_if(condition_parameters.begin(), condition_parameters.end(),
                     std::back_inserter(parts), is_decided);
      }
    }
    // A predicate of all earlier parameters makes every prefix different: nothing is worth
    // remembering.
    std::size_t choosing = 0;
    for (std::size_t i = 0; i < levels; ++i)
      choosing += decided[i] && parameters[i].values.size() > 1 ? 1 : 0;
    const auto tells_all = [&](const SpaceCondition* condition) {
      return condition->predicate != nullptr && condition->decided[level].size() >= choosing;
    };
    shares[level] = level > 0 && choosing > 0 &&
                    std::none_of(open[level].begin(), open[level].end(), tells_all);
    decided[order[level]] = true;
  }
}

}  // namespace kernwright
