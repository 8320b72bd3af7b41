// The configurations of a kernel: parameters with their values, and restrictions.
#pragma once

#include "tune/configuration_set.h"
#include "tune/expression.h"
#include "tune/restriction.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// The definition of neighbours among configurations.
enum class Neighbourhood : std::uint8_t {
  hamming,   ///< one parameter differs
  adjacent,  ///< any number of parameters differ, each by one step of its occurring values
};

/// Parameters, restrictions and the valid configurations. Copies share what they can.
///
/// The valid configurations are found at their first use, without a walk over the product of all
/// values: a condition is checked as soon as its parameters have values, and earlier if its bounds
/// already exclude the rest. A const Space may be used by several threads.
class Space {
 public:
  Space() = default;
  Space(const Space& other);
  Space& operator=(const Space& other);

  /// Adds a parameter. Throws InvalidArgument for a name that is no identifier, is a word of the
  /// expression language or exists already; also for no values, equal ones, or NaN.
  Space& add(std::string name, std::vector<Value> values);

  /// Adds a restriction. A name in it other than a parameter's belongs to the problem
  /// (set_problem); it is looked up with the configurations. Throws InvalidArgument for an invalid
  /// expression, NameNotFound for one without any name of a parameter or problem value.
  Space& require(std::string_view expression, std::string label = {});
  Space& require(std::string label, Predicate predicate);

  /// Replaces the problem's values.
  Space& set_problem(ProblemValues problem);

  /// No restriction, but exactly these configurations.
  Space& set_configurations(std::span<const Choices> configurations);

  std::span<const TuningParameter> parameters() const { return parameters_; }
  std::span<const Restriction> restrictions() const { return restrictions_; }
  const ProblemValues& problem() const { return problem_; }
  /// Whether set_configurations() made it.
  bool is_listed() const { return is_listed_; }
  /// The index of this parameter; throws NameNotFound.
  std::size_t parameter_index(std::string_view name) const;
  /// The place of a value equal to `value`, as Python compares them.
  std::optional<std::uint32_t> find_choice(std::size_t parameter, const Value& value) const;

  /// The valid configurations, sorted by the parameters in their order; by another order if this
  /// one would take very much longer: ConfigurationSet::order(). `poll` is called now and then
  /// during the search and may throw to end it.
  ///
  /// Throws NameNotFound for a name without a value. Throws InvalidArgument if no configuration is
  /// valid (with the restriction that removes most), and if an evaluation fails for a configuration
  /// allowed by all other restrictions (with the restriction and the values).
  const ConfigurationSet& configurations(const std::function<void()>& poll = {}) const;
  std::uint64_t size() const { return configurations().size(); }

  const Value& value(std::size_t parameter, std::uint32_t choice) const {
    return parameters_[parameter].values[choice];
  }
  /// "block=32, tile=2".
  std::string describe(std::span<const std::uint32_t> choices) const;

  /// `count` different configurations, each set of them as likely as any other. The same seed gives
  /// the same ones. Throws InvalidArgument when there are not so many.
  std::vector<std::uint64_t> sample(std::uint64_t count, std::uint64_t seed) const;

  /// Indices of the valid neighbours, ascending. `choices` itself need not be valid. Throws
  /// InvalidArgument when there are more than a million.
  std::vector<std::uint64_t> neighbours(std::span<const std::uint32_t> choices,
                                        Neighbourhood kind) const;

 private:
  void changed();

  std::vector<TuningParameter> parameters_;
  std::vector<Restriction> restrictions_;
  ProblemValues problem_;
  bool is_listed_ = false;
  mutable std::mutex mutex_;  ///< around the two below, never held during the search
  mutable std::shared_ptr<const ConfigurationSet> set_;
  mutable std::shared_ptr<const std::vector<Choices>> used_;
};

/// The search itself. Throws as Space::configurations() does.
ConfigurationSet find_configurations(std::span<const TuningParameter> parameters,
                                     std::span<const Restriction> restrictions,
                                     const ProblemValues& problem,
                                     const std::function<void()>& poll);

/// Throws InvalidArgument if the restrictions leave no configuration, with the one that removes
/// most.
[[noreturn]] void fail_for_empty_space(std::span<const TuningParameter> parameters,
                                       std::span<const Restriction> restrictions,
                                       const ProblemValues& problem);

}  // namespace kernwright
