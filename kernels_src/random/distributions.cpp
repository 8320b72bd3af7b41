// One kernel per distribution and type.
#include "kernels_src/random/distributions.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/random/distributions.cu.h"
#include "kernels_src/random/shared_blocks.h"

#include <algorithm>
#include <cmath>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kFillThreads = 256;
constexpr std::uint64_t kFillBlocksPerProcessor = 16;

enum class Distribution : std::uint8_t {
  uniform,
  normal,
  exponential,
  bernoulli,
  integers,
  wide_integers,
  gamma
};
constexpr std::array kDistributionNames = {"Uniform",  "Normal",       "Exponential", "Bernoulli",
                                           "Integers", "WideIntegers", "Gamma"};

/// As the kernels have it.
struct DistributionParameters {
  double a = 0, b = 0;
  std::uint64_t low = 0, range = 0;
};

const Family& distribution_family() {
  static const auto& made = *new Family("distributions.cu", text::distributions_cu);
  return made;
}

const LazyKernel& random_fill_kernel(Distribution kind, ScalarType type, bool packed) {
  const auto key = InstanceKey().add(kind, 3).type(type).add(packed, 1);
  return distribution_family().instance(key, [&] {
    return format("random_fill<{}, {}, {}>", kDistributionNames[static_cast<std::size_t>(kind)],
                  device_type(type), packed ? "true" : "false");
  });
}

/// Elements that a thread makes at a time: see random_fill.
std::uint64_t random_group_size(Distribution kind, ScalarType type) {
  const std::uint64_t vector = 16 / scalar_size(type);
  const bool wide = kind == Distribution::wide_integers || type == ScalarType::float64;
  const std::uint64_t each = kind == Distribution::gamma                              ? 1
                             : wide && kind != Distribution::bernoulli && vector == 2 ? 2
                                                                                      : 4;
  return std::max(vector, each);
}

void fill_random_contiguous(const Array& out, Distribution kind,
                            const DistributionParameters& parameters, const RandomState& state,
                            const Stream& stream) {
  Device& device = out.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const auto count = static_cast<std::uint64_t>(out.size());
  const std::uint64_t group = random_group_size(kind, out.type());
  const std::uint64_t blocks = ceil_div(ceil_div(count, group), std::uint64_t{kFillThreads});
  const auto most =
      kFillBlocksPerProcessor *
      static_cast<std::uint64_t>(device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  launch(random_fill_kernel(kind, out.type(), out.address() % 16 == 0).on(device),
         shared_blocks(blocks, most, kFillThreads, on), out.address(), count, state.seed,
         state.offset, state.counter_on(device), parameters);
  out.use_on(on);
  state.use_on(on);
}

void fill_random(const Array& out, Distribution kind, const DistributionParameters& parameters,
                 const RandomState& state, const Stream& stream) {
  if (out.read_only())
    throw InvalidArgument(format("cannot write to {}: it is read-only", out.identify()));
  state.counter_on(out.device());
  if (out.size() == 0) return;
  if (out.is_contiguous()) {
    fill_random_contiguous(out, kind, parameters, state, stream);
    return;
  }
  const Array made = Array::empty(out.device(), out.shape(), out.type(), stream);
  fill_random_contiguous(made, kind, parameters, state, stream);
  copy_elements(out, made, stream);
}

void require_random_floating(const Array& out, const char* what) {
  const ScalarType type = out.type();
  if (is_floating(type) && scalar_size(type) > 1) return;
  throw InvalidArgument(
      format("{} random numbers are float16, bfloat16, float32 or float64, not {}", what,
             scalar_name(type)));
}

void require_random_value(bool fits, const char* what, double value) {
  if (!fits) throw InvalidArgument(format("{}, not {}", what, value));
}

}  // namespace

CUdeviceptr RandomState::counter_on(const Device& device) const {
  if (!counter) return 0;
  const bool whole = counter->type() == ScalarType::uint64 || counter->type() == ScalarType::int64;
  if (counter->size() != 1 || !whole || &counter->device() != &device || counter->read_only()) {
    throw InvalidArgument(
        format("a counter is one uint64 that may be written, on the same device as the result, "
               "not {}",
               counter->identify()));
  }
  return counter->address();
}

void advance_counter(const Array& counter, std::uint64_t by, const Stream& stream) {
  Device& device = counter.device();
  const RandomState state{.counter = counter};
  const CUdeviceptr address = state.counter_on(device);
  LaunchConfig config;
  config.stream = stream ? stream : Stream::legacy(device);
  const LazyKernel& kernel =
      distribution_family().instance(~0ULL, [] { return "advance_counter"; });
  launch(kernel.on(device), config, address, by);
  counter.use_on(config.stream);
}

Array take_counter(const Array& counter, std::uint64_t by, const Stream& stream) {
  Device& device = counter.device();
  const RandomState state{.counter = counter};
  const CUdeviceptr address = state.counter_on(device);
  LaunchConfig config;
  config.stream = stream ? stream : Stream::legacy(device);
  Array taken = Array::empty(device, {1}, counter.type(), config.stream);
  const LazyKernel& kernel = distribution_family().instance(~1ULL, [] { return "take_counter"; });
  launch(kernel.on(device), config, address, taken.address(), by);
  counter.use_on(config.stream);
  taken.use_on(config.stream);
  return taken;
}

void fill_uniform(const Array& out, double low, double high, const RandomState& state,
                  const Stream& stream) {
  require_random_floating(out, "uniform");
  require_random_value(std::isfinite(high - low) && low <= high,
                       "high - low is finite and not negative", high - low);
  fill_random(out, Distribution::uniform, {.a = low, .b = high}, state, stream);
}

void fill_normal(const Array& out, double mean, double deviation, const RandomState& state,
                 const Stream& stream) {
  require_random_floating(out, "normal");
  require_random_value(deviation >= 0, "a standard deviation is not negative", deviation);
  fill_random(out, Distribution::normal, {.a = mean, .b = deviation}, state, stream);
}

void fill_exponential(const Array& out, double mean, const RandomState& state,
                      const Stream& stream) {
  require_random_floating(out, "exponential");
  require_random_value(mean >= 0, "the scale of an exponential distribution is not negative", mean);
  fill_random(out, Distribution::exponential, {.a = mean}, state, stream);
}

void fill_gamma(const Array& out, double shape, double scale, const RandomState& state,
                const Stream& stream) {
  require_random_floating(out, "gamma");
  require_random_value(shape > 0 && std::isfinite(shape),
                       "the shape of a gamma distribution is above 0", shape);
  require_random_value(scale >= 0, "the scale of a gamma distribution is not negative", scale);
  fill_random(out, Distribution::gamma, {.a = shape, .b = scale}, state, stream);
}

void fill_bernoulli(const Array& out, double probability, const RandomState& state,
                    const Stream& stream) {
  if (is_complex(out.type()))
    throw InvalidArgument(format("bernoulli numbers are real, not {}", scalar_name(out.type())));
  require_random_value(probability >= 0 && probability <= 1, "a probability lies between 0 and 1",
                       probability);
  const auto range = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(probability, 32)));
  fill_random(out, Distribution::bernoulli, {.range = range}, state, stream);
}

void fill_integers(const Array& out, std::uint64_t low, std::uint64_t range,
                   const RandomState& state, const Stream& stream) {
  if (!is_signed_integer(out.type()) && !is_unsigned_integer(out.type()))
    throw InvalidArgument(
        format("random integers are of an integer type, not {}", scalar_name(out.type())));
  const bool wide = range == 0 || range > (std::uint64_t{1} << 32);
  if (wide && scalar_size(out.type()) < 8)
    throw InvalidArgument(format("{} does not hold {} numbers", scalar_name(out.type()), range));
  fill_random(out, wide ? Distribution::wide_integers : Distribution::integers,
              {.low = low, .range = range}, state, stream);
}

}  // namespace kernwright::kernels
