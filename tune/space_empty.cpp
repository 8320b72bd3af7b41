// The message for a space without valid configurations.
#include "base/errors.h"
#include "base/format.h"
#include "tune/random.h"
#include "tune/space.h"
#include "tune/space_conditions.h"

#include <algorithm>
#include <numeric>

namespace kernwright {
namespace {

constexpr std::uint64_t kLooked = 20000;  // combinations: a fraction of a second
constexpr std::size_t kNamed = 3;

std::uint64_t combinations(std::span<const TuningParameter> parameters) {
  std::uint64_t product = 1;
  for (const TuningParameter& parameter : parameters)
    if (__builtin_mul_overflow(product, parameter.values.size(), &product))
      return ~std::uint64_t{0};
  return product;
}

bool is_excluded(const SpaceCondition& condition, const Choices& choices,
                 const std::vector<Scalar>& slots) {
  if (condition.predicate == nullptr) {
    const Evaluation result = condition.expression->try_evaluate(slots, condition.node);
    return result.failure == nullptr && !is_true(result.value);
  }
  std::vector<std::uint32_t> condition_choices;
  for (const std::uint32_t parameter : condition.parameters)
    condition_choices.push_back(choices[parameter]);
  return condition.predicate->test(condition_choices) == PredicateResult::no;
}

}  // namespace

void fail_for_empty_space(std::span<const TuningParameter> parameters,
                          std::span<const Restriction> restrictions, const ProblemValues& problem) {
  const SpaceConditions conditions(parameters, restrictions, problem);
  const std::uint64_t product = combinations(parameters);
  const bool looks_at_all = product <= kLooked;
  const std::uint64_t looked = std::min(product, kLooked);
  std::vector<std::uint64_t> removed(conditions.all.size());
  std::uint64_t removed_together = 0;
  Random random(0);
  Choices choices(parameters.size());
  std::vector<Scalar> slots(parameters.size());
  for (std::uint64_t i = 0; i < looked; ++i) {
    std::uint64_t rest = i;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const std::uint64_t count = parameters[p].values.size();
      choices[p] = static_cast<std::uint32_t>(looks_at_all ? rest % count : random.below(count));
      rest /= count;
      slots[p] = Scalar::from(parameters[p].values[choices[p]]);
    }
    bool any = false;
    for (std::size_t c = 0; c < removed.size(); ++c) {
      const bool excluded = is_excluded(conditions.all[c], choices, slots);
      removed[c] += excluded ? 1 : 0;
      any = any || excluded;
    }
    removed_together += any ? 1 : 0;
  }
  std::vector<std::size_t> ranked(removed.size());
  std::iota(ranked.begin(), ranked.end(), std::size_t{0});
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](std::size_t a, std::size_t b) { return removed[a] > removed[b]; });
  std::string named;
  std::vector<std::string> seen;
  for (const std::size_t c : ranked) {
    const std::string& label = conditions.all[c].label;
    if (seen.size() == kNamed) break;
    if (std::find(seen.begin(), seen.end(), label) != seen.end()) continue;
    seen.push_back(label);
    named += format("{}\"{}\" removes {}", named.empty() ? "" : ", ", label, removed[c]);
  }
  throw InvalidArgument(
      format("no configuration is valid: of {} combinations{}, {}", looked,
             looks_at_all ? "" : format(" drawn at random (of {} in all)", product), named));
}

}  // namespace kernwright
