// The search for the valid configurations of a space: a walk down the parameters with memory.
#include "base/errors.h"
#include "base/format.h"
#include "base/hash.h"
#include "tune/expression_bounds.h"
#include "tune/hash_map.h"
#include "tune/space.h"
#include "tune/space_conditions.h"

#include <algorithm>

namespace kernwright {
namespace {

constexpr std::uint64_t kPollEvery = std::uint64_t{1} << 16;  // evaluations: some milliseconds

/// Goes through the parameters in order, one level of recursion for each. The part below a level
/// depends on the values above only through the decided parts of conditions. Prefixes with equal
/// decided parts share their node, found again by a hash of them.
class Search {
 public:
  Search(std::span<const TuningParameter> parameters, SpaceConditions& conditions,
         const std::function<void()>& poll)
      : parameters_(parameters),
        conditions_(conditions),
        poll_(poll),
        builder_(conditions.order),
        slots_(parameters.size()),
        choices_(parameters.size()),
        bounds_(parameters.size()),
        satisfied_(conditions.all.size()),
        memory_(parameters.size()) {
    for (std::size_t i = 0; i < parameters.size(); ++i) bounds_[i] = range(i);
  }

  /// Nothing when no configuration is valid.
  std::optional<ConfigurationSet> run() {
    for (const SpaceCondition& condition : conditions_.all)
      if (condition.parameters.empty() && !constant_holds(condition)) return std::nullopt;
    const std::uint32_t root = node(0);
    if (root == ConfigurationSetBuilder::kNone) return std::nullopt;
    return std::move(builder_).finish(root);
  }

 private:
  std::uint32_t parameter_at(std::size_t level) const { return conditions_.order[level]; }

  Bounds range(std::size_t parameter) const {
    Bounds all;
    for (const Value& value : parameters_[parameter].values) {
      const Bounds one = Bounds::from(Scalar::from(value));
      if (!one.known) return {};
      all = all.known ? Bounds{std::min(all.low, one.low), std::max(all.high, one.high), true,
                               all.certain && one.certain}
                      : one;
    }
    return all;
  }

  bool constant_holds(const SpaceCondition& condition) const {
    const Evaluation result = condition.expression->try_evaluate(slots_, condition.node);
    if (result.failure != nullptr)
      throw InvalidArgument(condition.expression->describe_failure(result));
    return is_true(result.value);
  }

  void count_evaluation() {
    if (++evaluations_ % kPollEvery == 0 && poll_) poll_();
  }

  std::vector<std::uint32_t> choices_for(const SpaceCondition& condition) const {
    std::vector<std::uint32_t> condition_choices;
    for (const std::uint32_t parameter : condition.parameters)
      condition_choices.push_back(choices_[parameter]);
    return condition_choices;
  }

  PredicateResult test(const SpaceCondition& condition) {
    count_evaluation();
    if (condition.predicate != nullptr) return condition.predicate->test(choices_for(condition));
    const Evaluation result = condition.expression->try_evaluate(slots_, condition.node);
    if (result.failure != nullptr) return PredicateResult::failed;
    return is_true(result.value) ? PredicateResult::yes : PredicateResult::no;
  }

  /// For the current values, with which `condition` failed.
  [[noreturn]] void fail(const SpaceCondition& condition) {
    std::string values;
    for (const std::uint32_t parameter : condition.parameters)
      values += format("{}{}={}", values.empty() ? "" : ", ", parameters_[parameter].name,
                       value_text(parameters_[parameter].values[choices_[parameter]]));
    if (condition.predicate != nullptr) {
      condition.predicate->fail(choices_for(condition));
      throw InvalidArgument(format("the restriction {} fails for {}", condition.label, values));
    }
    const Evaluation result = condition.expression->try_evaluate(slots_, condition.node);
    const std::string what = condition.expression->describe_failure(result);
    const std::string label =
        condition.label == condition.expression->text() ? "" : condition.label + ": ";
    throw InvalidArgument(format("a restriction fails: {}{}, for {}", label, what, values));
  }

  /// The facts with influence on the configurations below a level.
  Hash128 key(std::size_t level) {
    key_.clear();
    const auto put = [&](std::uint64_t number) {
      key_.append(reinterpret_cast<const char*>(&number), sizeof number);
    };
    for (const SpaceCondition* condition : conditions_.open[level]) {
      const std::size_t index = condition - conditions_.all.data();
      put(satisfied_[index] ? 1 : 0);
      if (satisfied_[index]) continue;
      if (condition->predicate != nullptr) {
        for (const std::uint32_t parameter : condition->decided[level]) put(choices_[parameter]);
        continue;
      }
      for (const std::uint32_t part : condition->decided[level]) {
        const Evaluation result = condition->expression->try_evaluate(slots_, part);
        const bool failed = result.failure != nullptr;
        put(failed ? ~std::uint64_t{0} : static_cast<std::uint64_t>(result.value.kind));
        // For a string the address: strings of parameters are equal only if they are the same.
        if (!failed) put(static_cast<std::uint64_t>(result.value.integer));
      }
    }
    return hash_text(key_);
  }

  std::uint32_t node(std::size_t level) {
    if (level == parameters_.size()) return ConfigurationSetBuilder::kEnd;
    const bool remembers = conditions_.shares[level];
    const Hash128 known_by = remembers ? key(level) : Hash128{};
    if (remembers) {
      const auto found = memory_[level].find(known_by);
      if (found != memory_[level].end()) return found->second;
    }
    const std::uint32_t parameter = parameter_at(level);
    std::vector<ConfigurationSetBuilder::Choice> choices;
    const Bounds whole = bounds_[parameter];
    const std::vector<Value>& values = parameters_[parameter].values;
    for (std::uint32_t choice = 0; choice < values.size(); ++choice) {
      choices_[parameter] = choice;
      slots_[parameter] = Scalar::from(values[choice]);
      bounds_[parameter] = Bounds::from(slots_[parameter]);
      const std::uint32_t child = descend(level);
      if (child != ConfigurationSetBuilder::kNone) choices.push_back({choice, child});
    }
    bounds_[parameter] = whole;
    const std::uint32_t made =
        choices.empty() ? ConfigurationSetBuilder::kNone : builder_.node(level, choices);
    if (remembers) memory_[level].emplace(known_by, made);
    return made;
  }

  /// The node below the last choice at `level`.
  std::uint32_t descend(std::size_t level) {
    const SpaceCondition* failed = nullptr;
    for (const SpaceCondition* condition : conditions_.complete[level]) {
      const std::size_t index = condition - conditions_.all.data();
      if (satisfied_[index]) continue;
      const PredicateResult verdict = test(*condition);
      if (verdict == PredicateResult::no) return ConfigurationSetBuilder::kNone;
      if (verdict == PredicateResult::failed && failed == nullptr) failed = condition;
    }
    std::vector<std::size_t> now_satisfied;
    bool possible = true;
    for (const SpaceCondition* condition : conditions_.partial[level]) {
      const std::size_t index = condition - conditions_.all.data();
      if (satisfied_[index] || condition->predicate != nullptr) continue;
      count_evaluation();
      const Bounds bounds =
          expression_bounds(condition->expression->tree(), condition->node, bounds_);
      possible = !bounds.always_false();
      if (!possible) break;
      if (!bounds.always_true()) continue;
      satisfied_[index] = true;
      now_satisfied.push_back(index);
    }
    const std::uint32_t child = possible ? node(level + 1) : ConfigurationSetBuilder::kNone;
    for (const std::size_t index : now_satisfied) satisfied_[index] = false;
    // A failure counts only for configurations allowed by all other conditions.
    if (failed != nullptr && child != ConfigurationSetBuilder::kNone) fail(*failed);
    return child;
  }

  std::span<const TuningParameter> parameters_;
  SpaceConditions& conditions_;
  const std::function<void()>& poll_;
  ConfigurationSetBuilder builder_;
  std::vector<Scalar> slots_;
  Choices choices_;
  std::vector<Bounds> bounds_;
  std::vector<bool> satisfied_;                 ///< of each condition: whatever follows, it holds
  std::vector<HashMap<std::uint32_t>> memory_;  ///< of each level
  std::string key_;
  std::uint64_t evaluations_ = 0;
};

}  // namespace

ConfigurationSet find_configurations(std::span<const TuningParameter> parameters,
                                     std::span<const Restriction> restrictions,
                                     const ProblemValues& problem,
                                     const std::function<void()>& poll) {
  SpaceConditions conditions(parameters, restrictions, problem);
  std::optional<ConfigurationSet> set = Search(parameters, conditions, poll).run();
  if (!set) fail_for_empty_space(parameters, restrictions, problem);
  return std::move(*set);
}

}  // namespace kernwright
