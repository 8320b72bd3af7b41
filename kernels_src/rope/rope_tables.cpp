// Turns a rule into numbers for the device; slopes and biases of ALiBi.
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"
#include "kernels_src/rope/rope.h"
#include "kernels_src/rope/rope_tables.cu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kTableThreads = 256;
constexpr std::array<std::string_view, 7> kScalingNames = {
    "default", "linear", "ntk", "dynamic", "yarn", "llama3", "longrope"};

/// FrequencyRule of rope_tables.cu.
struct FrequencyRule {
  double base, factor, low, high, original, attention;
  CUdeviceptr divisors;
  std::int32_t kind;
};

const Family& table_family() {
  static const auto& made = *new Family("rope_tables.cu", text::rope_tables_cu);
  return made;
}

enum class TableKernel : std::uint8_t { frequencies, tables, slopes };

const LazyKernel& table_kernel(TableKernel which) {
  return table_family().instance(InstanceKey().add(0, 1).add(which, 2), [&]() -> std::string {
    constexpr std::array names = {"rope_frequencies", "rope_tables", "alibi_slopes"};
    return names[static_cast<std::size_t>(which)];
  });
}

LaunchConfig table_blocks(std::int64_t count, const Stream& on) {
  return {.grid = {static_cast<std::uint32_t>(ceil_div(count, kTableThreads))},
          .block = {static_cast<std::uint32_t>(kTableThreads)},
          .stream = on};
}

void check_divisors(const RopeRule& rule) {
  if (rule.divisors && rule.divisors->type() == ScalarType::float64 &&
      rule.divisors->is_contiguous() && rule.divisors->shape() == Shape{rule.dim / 2})
    return;
  throw InvalidArgument(format("scaling \"longrope\" of {} dimensions takes {} factors, and got {}",
                               rule.dim, rule.dim / 2,
                               rule.divisors ? rule.divisors->identify() : "none"));
}

void check_rule(const RopeRule& rule) {
  if (rule.dim < 0 || rule.dim % 2 != 0 || rule.dim > 65536) {
    throw InvalidArgument(
        format("the rotary dimension is {}, and must be even and at most 65536", rule.dim));
  }
  if (!(rule.base > 0) || !(rule.factor > 0)) {
    throw InvalidArgument(format("base {} and factor {} of a rotary embedding must be above 0",
                                 rule.base, rule.factor));
  }
  const bool needs = rule.scaling == RopeScaling::dynamic || rule.scaling == RopeScaling::yarn ||
                     rule.scaling == RopeScaling::llama3 || rule.scaling == RopeScaling::longrope;
  if (needs && !(rule.original > 0)) {
    throw InvalidArgument(format("scaling \"{}\" needs original_max_position_embeddings above 0",
                                 kScalingNames[static_cast<std::size_t>(rule.scaling)]));
  }
  if (rule.scaling == RopeScaling::longrope) check_divisors(rule);
  if (rule.scaling == RopeScaling::llama3 && !(rule.high > rule.low)) {
    throw InvalidArgument(
        format("high_freq_factor {} must be above low_freq_factor {}", rule.high, rule.low));
  }
}

/// The base that stretches the slowest pair by `stretch` and leaves the fastest as it is.
double stretched_base(const RopeRule& rule, double stretch) {
  if (rule.dim <= 2) return rule.base;
  const auto dim = static_cast<double>(rule.dim);
  return rule.base * std::pow(stretch, dim / (dim - 2));
}

/// The pair (as a real number) with that many full rotations over the original positions.
double rotation_pair(const RopeRule& rule, double rotations) {
  return static_cast<double>(rule.dim) *
         std::log(rule.original / (rotations * 2 * std::numbers::pi)) / (2 * std::log(rule.base));
}

FrequencyRule frequency_rule(const RopeRule& rule) {
  check_rule(rule);
  FrequencyRule made{rule.base, 1, 0, 1, rule.original, rope_attention_factor(rule), 0, 0};
  switch (rule.scaling) {
    case RopeScaling::none:
      break;
    case RopeScaling::linear:
      made.factor = rule.factor;
      break;
    case RopeScaling::ntk:
      made.base = stretched_base(rule, rule.factor);
      break;
    case RopeScaling::dynamic: {
      const double length = std::max(rule.length, rule.original);
      made.base = stretched_base(rule, rule.factor * length / rule.original - (rule.factor - 1));
      break;
    }
    case RopeScaling::yarn: {
      double low = rotation_pair(rule, rule.beta_fast), high = rotation_pair(rule, rule.beta_slow);
      if (rule.truncate) low = std::floor(low), high = std::ceil(high);
      low = std::max(low, 0.0);
      high = std::min(high, static_cast<double>(rule.dim - 1));
      made = {rule.base,     rule.factor,    low, high == low ? high + 0.001 : high,
              rule.original, made.attention, 0,   1};
      break;
    }
    case RopeScaling::llama3:
      made = {rule.base, rule.factor, rule.low, rule.high, rule.original, made.attention, 0, 2};
      break;
    case RopeScaling::longrope:
      made.divisors = rule.divisors->address();
      break;
  }
  return made;
}

const LazyKernel& bias_kernel(ScalarType type) {
  return table_family().instance(InstanceKey().add(1, 1).type(type),
                                 [&] { return format("alibi_bias<{}>", device_type(type)); });
}

}  // namespace

RopeScaling rope_scaling_from_name(std::string_view name) {
  const auto found = std::find(kScalingNames.begin(), kScalingNames.end(), name);
  if (found != kScalingNames.end()) return static_cast<RopeScaling>(found - kScalingNames.begin());
  throw ArgumentError(
      format("\"{}\" is no scaling of a rotary embedding; there are default, "
             "linear, ntk, dynamic, yarn, llama3, longrope",
             name));
}

double rope_attention_factor(const RopeRule& rule) {
  const bool longrope = rule.scaling == RopeScaling::longrope;
  if (rule.scaling != RopeScaling::yarn && !longrope) return 1;
  if (rule.attention) return *rule.attention;
  if (longrope)
    return rule.factor <= 1 ? 1 : std::sqrt(1 + std::log(rule.factor) / std::log(rule.original));
  const auto scale = [&](double mscale) {
    return rule.factor <= 1 ? 1.0 : 0.1 * mscale * std::log(rule.factor) + 1;
  };
  if (rule.mscale != 0 && rule.mscale_all_dim != 0)
    return scale(rule.mscale) / scale(rule.mscale_all_dim);
  return scale(1);
}

Array rope_frequencies(Device& device, const RopeRule& rule, const Stream& stream) {
  const FrequencyRule numbers = frequency_rule(rule);
  const Stream on = stream ? stream : Stream::legacy(device);
  Array made = Array::empty(device, {rule.dim / 2}, ScalarType::float32, on);
  if (made.size() == 0) return made;
  launch(table_kernel(TableKernel::frequencies).on(device), table_blocks(made.size(), on),
         made.address(), static_cast<std::int32_t>(made.size()), numbers);
  made.use_on(on);
  if (rule.divisors) rule.divisors->use_on(on);
  return made;
}

CosSin rope_tables(Device& device, const RopeRule& rule, std::int64_t rows, std::int64_t first,
                   const Stream& stream) {
  const FrequencyRule numbers = frequency_rule(rule);
  const Stream on = stream ? stream : Stream::legacy(device);
  const Shape shape = {rows, rule.dim / 2};
  CosSin made{Array::empty(device, shape, ScalarType::float32, on),
              Array::empty(device, shape, ScalarType::float32, on)};
  if (made.cos.size() == 0) return made;
  launch(table_kernel(TableKernel::tables).on(device), table_blocks(made.cos.size(), on),
         made.cos.address(), made.sin.address(), rows, static_cast<std::int32_t>(rule.dim / 2),
         first, numbers);
  made.cos.use_on(on);
  made.sin.use_on(on);
  if (rule.divisors) rule.divisors->use_on(on);
  return made;
}

Array alibi_slopes(Device& device, std::int64_t heads, const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(device);
  Array made = Array::empty(device, {heads}, ScalarType::float32, on);
  if (heads == 0) return made;
  launch(table_kernel(TableKernel::slopes).on(device), table_blocks(heads, on), made.address(),
         static_cast<std::int32_t>(heads));
  made.use_on(on);
  return made;
}

Array alibi_bias(Device& device, std::int64_t heads, std::int64_t queries, std::int64_t keys,
                 ScalarType type, const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(device);
  Array made = Array::empty(device, {heads, queries, keys}, type, on);
  require_floating(made, "alibi_bias", "the result");
  if (made.size() == 0) return made;
  launch(bias_kernel(type).on(device), table_blocks(made.size(), on), made.address(),
         static_cast<std::int32_t>(heads), queries, keys);
  made.use_on(on);
  return made;
}

}  // namespace kernwright::kernels
