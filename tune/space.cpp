// Parameters and restrictions as they are added, samples and neighbours.
#include "tune/space.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/nearest_name.h"
#include "tune/random.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

namespace kernwright {
namespace {

constexpr std::size_t kMaxParameters = 256;
constexpr std::size_t kMaxValues = std::size_t{1} << 20;
constexpr std::size_t kMaxNeighbours = std::size_t{1} << 20;

bool is_identifier(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto fits = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && is_letter(name.front()) && std::all_of(name.begin(), name.end(), fits);
}

/// Equal values have equal keys: 1, 1.0 and True are one.
std::string value_key(const Value& value) {
  if (std::holds_alternative<std::string>(value)) return "s" + std::get<std::string>(value);
  const Scalar scalar = Scalar::from(value);
  if (scalar.is_integral()) return value_text(Value(scalar.integer));
  const double real = scalar.real;
  if (real == std::floor(real) && std::fabs(real) < 0x1p63)
    return value_text(Value(static_cast<std::int64_t>(real)));
  return value_text(value);
}

void check_values(const std::string& name, const std::vector<Value>& values) {
  if (values.empty()) throw InvalidArgument(format("the parameter {} has no values", name));
  if (values.size() > kMaxValues)
    throw InvalidArgument(
        format("the parameter {} has {} values, {} at most", name, values.size(), kMaxValues));
  std::unordered_set<std::string> seen;
  for (const Value& value : values) {
    if (std::holds_alternative<double>(value) && std::isnan(std::get<double>(value)))
      throw InvalidArgument(format("a value of the parameter {} is NaN", name));
    if (!seen.insert(value_key(value)).second)
      throw InvalidArgument(
          format("the parameter {} has the value {} twice", name, value_text(value)));
  }
}

std::vector<std::string> parameter_names(std::span<const TuningParameter> parameters) {
  std::vector<std::string> names;
  for (const TuningParameter& parameter : parameters) names.push_back(parameter.name);
  return names;
}

}  // namespace

Space::Space(const Space& other) { *this = other; }

Space& Space::operator=(const Space& other) {
  if (this == &other) return *this;
  const std::scoped_lock locked(mutex_, other.mutex_);
  parameters_ = other.parameters_;
  restrictions_ = other.restrictions_;
  problem_ = other.problem_;
  is_listed_ = other.is_listed_;
  set_ = other.set_;
  used_ = other.used_;
  return *this;
}

void Space::changed() {
  const std::lock_guard locked(mutex_);
  set_.reset();
  used_.reset();
}

Space& Space::add(std::string name, std::vector<Value> values) {
  if (!is_identifier(name))
    throw InvalidArgument(
        format("a parameter's name must be valid for a C macro (letters, digits and _): got \"{}\"",
               name));
  if (is_expression_word(name))
    throw InvalidArgument(format("no parameter can be named {}: expressions use the word", name));
  for (const TuningParameter& known : parameters_)
    if (known.name == name)
      throw InvalidArgument(format("there are two parameters named {}", name));
  if (parameters_.size() == kMaxParameters)
    throw InvalidArgument(format("a space can have at most {} parameters", kMaxParameters));
  check_values(name, values);
  parameters_.push_back({std::move(name), std::move(values)});
  changed();
  return *this;
}

Space& Space::require(std::string_view expression, std::string label) {
  Restriction restriction;
  restriction.expression.emplace(expression);
  restriction.label = label.empty() ? std::string(expression) : std::move(label);
  const std::vector<std::string> known = parameter_names(parameters_);
  const auto has_value = [&](const std::string& name) {
    return problem_.contains(name) || std::find(known.begin(), known.end(), name) != known.end();
  };
  const std::vector<std::string>& names = restriction.expression->names();
  if (!names.empty() && std::none_of(names.begin(), names.end(), has_value))
    throw NameNotFound(format("the restriction \"{}\" names no parameter of the space{}",
                              restriction.label, describe_names(names.front(), known)));
  restrictions_.push_back(std::move(restriction));
  changed();
  return *this;
}

Space& Space::require(std::string label, Predicate predicate) {
  for (const std::string& name : predicate.parameters) parameter_index(name);
  restrictions_.push_back({std::move(label), std::nullopt, std::move(predicate)});
  changed();
  return *this;
}

Space& Space::set_problem(ProblemValues problem) {
  for (const auto& entry : problem) {
    if (!is_identifier(entry.first) || is_expression_word(entry.first))
      throw InvalidArgument(format("\"{}\" cannot name a value of the problem", entry.first));
    for (const TuningParameter& parameter : parameters_)
      if (parameter.name == entry.first)
        throw InvalidArgument(format(
            "{} names both a parameter and a value of the problem: rename one", entry.first));
  }
  problem_ = std::move(problem);
  changed();
  return *this;
}

Space& Space::set_configurations(std::span<const Choices> configurations) {
  for (const Choices& choices : configurations) {
    bool fits = choices.size() == parameters_.size();
    for (std::size_t i = 0; fits && i < choices.size(); ++i)
      fits = choices[i] < parameters_[i].values.size();
    if (!fits) throw InvalidArgument("a configuration does not fit the parameters of the space");
  }
  auto set = std::make_shared<ConfigurationSet>(ConfigurationSet::from(configurations));
  restrictions_.clear();
  is_listed_ = true;
  changed();
  const std::lock_guard locked(mutex_);
  set_ = std::move(set);
  return *this;
}

std::size_t Space::parameter_index(std::string_view name) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].name == name) return i;
  throw NameNotFound(format("there is no parameter {}{}", name,
                            describe_names(name, parameter_names(parameters_))));
}

std::optional<std::uint32_t> Space::find_choice(std::size_t parameter, const Value& value) const {
  const std::vector<Value>& values = parameters_[parameter].values;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values_equal(values[i], value)) return static_cast<std::uint32_t>(i);
  return std::nullopt;
}

const ConfigurationSet& Space::configurations(const std::function<void()>& poll) const {
  {
    const std::lock_guard locked(mutex_);
    if (set_) return *set_;
  }
  if (parameters_.empty()) throw InvalidArgument("the space has no parameters");
  auto set = std::make_shared<ConfigurationSet>(
      find_configurations(parameters_, restrictions_, problem_, poll));
  const std::lock_guard locked(mutex_);
  if (!set_) set_ = std::move(set);  // another thread may have been first
  return *set_;
}

std::string Space::describe(std::span<const std::uint32_t> choices) const {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i)
    text += format("{}{}={}", i == 0 ? "" : ", ", parameters_[i].name,
                   value_text(parameters_[i].values[choices[i]]));
  return text;
}

std::vector<std::uint64_t> Space::sample(std::uint64_t count, std::uint64_t seed) const {
  const std::uint64_t total = size();
  if (count > total)
    throw InvalidArgument(format("a sample of {} configurations: the space has {}", count, total));
  Random random(seed);
  std::vector<std::uint64_t> picked;
  picked.reserve(count);
  // Floyd's algorithm: each step adds one of the first i + 1, the last of them instead of a repeat.
  std::unordered_set<std::uint64_t> seen;
  for (std::uint64_t i = total - count; i < total; ++i) {
    std::uint64_t index = random.below(i + 1);
    if (!seen.insert(index).second) seen.insert(index = i);
    picked.push_back(index);
  }
  random.shuffle(std::span(picked));
  return picked;
}

std::vector<std::uint64_t> Space::neighbours(std::span<const std::uint32_t> choices,
                                             Neighbourhood kind) const {
  const ConfigurationSet& set = configurations();
  std::vector<std::uint64_t> found;
  Choices near(choices.begin(), choices.end());
  if (kind == Neighbourhood::hamming) {
    for (std::size_t i = 0; i < near.size(); ++i) {
      for (near[i] = 0; near[i] < parameters_[i].values.size(); ++near[i])
        if (near[i] != choices[i])
          if (const auto index = set.find(near)) found.push_back(*index);
      near[i] = choices[i];
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  std::shared_ptr<const std::vector<Choices>> used;
  {
    const std::lock_guard locked(mutex_);
    if (!used_) used_ = std::make_shared<std::vector<Choices>>(set.used_choices());
    used = used_;
  }
  std::vector<Choices> allowed(near.size());
  for (std::size_t i = 0; i < near.size(); ++i) {
    const Choices& all = (*used)[i];
    const auto here = std::lower_bound(all.begin(), all.end(), choices[i]);
    if (here != all.begin()) allowed[i].push_back(*(here - 1));
    allowed[i].push_back(choices[i]);
    const auto above = here != all.end() && *here == choices[i] ? here + 1 : here;
    if (above != all.end()) allowed[i].push_back(*above);
  }
  found = set.within(allowed, kMaxNeighbours + 1);
  if (found.size() > kMaxNeighbours)
    throw InvalidArgument(
        format("the configuration has more than {} adjacent ones: ask for its "
               "hamming neighbours",
               kMaxNeighbours));
  if (const auto self = set.find(choices)) std::erase(found, *self);
  return found;
}

}  // namespace kernwright
