// Expressions for the values of a configuration.
#include "tune/session/launch_rule.h"

#include "base/errors.h"
#include "base/format.h"

#include <limits>
#include <span>
#include <utility>

namespace kernwright {
namespace {

std::vector<Expression> bound(const Space& space, std::span<const std::string> texts,
                              const char* what) {
  if (texts.empty() || texts.size() > 3)
    throw InvalidArgument(format("{} has {} extents: use 1, 2 or 3", what, texts.size()));
  std::vector<std::string> names;
  for (const TuningParameter& parameter : space.parameters()) names.push_back(parameter.name);
  std::vector<Expression> expressions;
  for (const std::string& text : texts)
    expressions.push_back(Expression(text).bind(names, space.problem()));
  return expressions;
}

std::uint32_t whole(const Expression& expression, std::span<const Scalar> slots, const char* what,
                    std::int64_t least) {
  const Scalar value = expression.evaluate(slots);
  const double number = value.is_text() ? -1 : value.as_real();
  if (number < static_cast<double>(least) || number > std::numeric_limits<std::uint32_t>::max() ||
      number != static_cast<double>(static_cast<std::uint32_t>(number))) {
    throw InvalidArgument(format("{}: \"{}\" gives {}, but must give a whole number of at least {}",
                                 what, expression.text(), value_text(value.to_value()), least));
  }
  return static_cast<std::uint32_t>(number);
}

Dim3 extents(std::span<const Expression> expressions, std::span<const Scalar> slots,
             const char* what) {
  Dim3 result;
  std::uint32_t* const places[] = {&result.x, &result.y, &result.z};
  for (std::size_t i = 0; i < expressions.size(); ++i)
    *places[i] = whole(expressions[i], slots, what, 1);
  return result;
}

}  // namespace

std::string define_text(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "1" : "0";
  if (const auto* text = std::get_if<std::string>(&value)) return text->empty() ? " " : *text;
  return value_text(value);
}

LaunchRule::LaunchRule(const Space& space, Program program, std::string name,
                       const LaunchExpressions& expressions)
    : space_(&space),
      program_(std::move(program)),
      name_(std::move(name)),
      grid_(bound(space, expressions.grid, "grid")),
      block_(bound(space, expressions.block, "block")),
      shared_bytes_(bound(space, std::span(&expressions.shared_bytes, 1), "shared_bytes")) {}

KernelPlan LaunchRule::operator()(std::uint64_t index) const {
  const Choices choices = space_->configurations().at(index);
  ProgramOptions options = program_.options();
  std::vector<Scalar> slots;
  for (std::size_t p = 0; p < choices.size(); ++p) {
    const Value& value = space_->value(p, choices[p]);
    options.defines[space_->parameters()[p].name] = define_text(value);
    slots.push_back(Scalar::from(value));
  }
  KernelPlan plan{.program = Program(program_.source(), std::move(options))};
  plan.name = name_;
  plan.grid = extents(grid_, slots, "grid");
  plan.block = extents(block_, slots, "block");
  plan.shared_bytes = whole(shared_bytes_.front(), slots, "shared_bytes", 0);
  return plan;
}

}  // namespace kernwright
