// The restrictions of a space taken apart for the search: each can be checked after a certain
// parameter.
#pragma once

#include "tune/expression.h"
#include "tune/restriction.h"

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace kernwright {

/// One operand of a restriction's outermost `and`, or a predicate.
struct SpaceCondition {
  std::string label;
  const Expression* expression = nullptr;      ///< bound to the parameters as slots
  std::uint32_t node = 0;                      ///< of its tree
  const Predicate* predicate = nullptr;        ///< if there is no expression
  std::vector<std::uint32_t> parameters = {};  ///< its parameters; a predicate's in its own order
  std::size_t last_level = 0;                  ///< where the last of them gets its value
  /// For each level, the parts decided by earlier levels: the largest parts of the tree with all
  /// their values; for a predicate its parameters.
  std::vector<std::vector<std::uint32_t>> decided = {};
};

/// A level is a place in the order in which parameters get their values.
struct SpaceConditions {
  /// Throws NameNotFound for names outside the parameters and the problem. `parameters` and
  /// `restrictions` must outlive it.
  SpaceConditions(std::span<const TuningParameter> parameters,
                  std::span<const Restriction> restrictions, const ProblemValues& problem);
  SpaceConditions(const SpaceConditions&) = delete;
  SpaceConditions& operator=(const SpaceConditions&) = delete;

  std::vector<std::uint32_t> order;  ///< parameters by level
  std::vector<SpaceCondition> all;
  using List = std::vector<const SpaceCondition*>;
  std::vector<List> complete;  ///< by level: conditions whose last parameter gets its value there
  std::vector<List> partial;  ///< by level: conditions with a parameter there, but not the last one
  std::vector<List> open;     ///< by level: conditions with earlier parameters and missing ones
  std::vector<bool> shares;   ///< by level: prefixes may have equal decided parts

 private:
  void take_apart(const Restriction& restriction, std::span<const std::string> names,
                  const ProblemValues& problem);
  void arrange(std::span<const TuningParameter> parameters);

  std::deque<Expression> expressions_;
};

}  // namespace kernwright
