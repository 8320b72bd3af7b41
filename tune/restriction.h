// A condition on configurations: an expression, or a function of some parameters.
#pragma once

#include "tune/expression.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kernwright {

enum class PredicateResult : std::uint8_t { no, yes, failed };

/// A restriction other than an expression: a function of the choices of some parameters.
struct Predicate {
  std::vector<std::string> parameters;  ///< their choices are the arguments, in this order
  std::function<PredicateResult(std::span<const std::uint32_t> choices)> test;
  /// Throws the error of `test` for the same choices.
  std::function<void(std::span<const std::uint32_t> choices)> fail;
};

struct Restriction {
  std::string label;  ///< how messages name it; an expression's own text by default
  std::optional<Expression> expression;
  std::optional<Predicate> predicate;  ///< where there is no expression
};

/// A parameter and its values in the order of the configurations.
struct TuningParameter {
  std::string name;
  std::vector<Value> values;
};

}  // namespace kernwright
