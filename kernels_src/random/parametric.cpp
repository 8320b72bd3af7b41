// One kernel per distribution and type; a parameter is a value or an array.
#include "kernels_src/random/parametric.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/random/parametric.cu.h"
#include "kernels_src/random/shared_blocks.h"

#include <algorithm>
#include <array>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kParametricThreads = 256;
constexpr std::uint64_t kParametricBlocksPerProcessor = 16;
constexpr std::size_t kMostRandomParameters = 4;

/// What a distribution's numbers are.
enum class NumberKind : std::uint8_t { floating, whole, integer, real };

struct ParametricDistribution {
  std::string_view name;
  const char* device_name;  // with {} for the type
  std::size_t parameters;
  NumberKind numbers;
};
constexpr std::array kParametricDistributions = {
    ParametricDistribution{"uniform", "UniformDraw<{}>", 2, NumberKind::floating},
    ParametricDistribution{"normal", "Scaled<Normal, {}, 1>", 2, NumberKind::floating},
    ParametricDistribution{"exponential", "Scaled<Exponential, {}, 0>", 1, NumberKind::floating},
    ParametricDistribution{"gamma", "GammaDraw<{}>", 2, NumberKind::floating},
    ParametricDistribution{"bernoulli", "BernoulliDraw<{}>", 1, NumberKind::real},
    ParametricDistribution{"integers", "IntegerDraw<{}>", 2, NumberKind::integer},
    ParametricDistribution{"laplace", "Continuous<Laplace, {}>", 2, NumberKind::floating},
    ParametricDistribution{"logistic", "Continuous<Logistic, {}>", 2, NumberKind::floating},
    ParametricDistribution{"gumbel", "Continuous<Gumbel, {}>", 2, NumberKind::floating},
    ParametricDistribution{"cauchy", "Continuous<Cauchy, {}>", 2, NumberKind::floating},
    ParametricDistribution{"lognormal", "Continuous<Lognormal, {}>", 2, NumberKind::floating},
    ParametricDistribution{"weibull", "Continuous<Weibull, {}>", 2, NumberKind::floating},
    ParametricDistribution{"pareto", "Continuous<Pareto, {}>", 1, NumberKind::floating},
    ParametricDistribution{"triangular", "Continuous<Triangular, {}>", 3, NumberKind::floating},
    ParametricDistribution{"truncated_normal", "Continuous<TruncatedNormal, {}>", 4,
                           NumberKind::floating},
    ParametricDistribution{"log_gamma", "Continuous<LogGamma, {}>", 1, NumberKind::floating},
    ParametricDistribution{"beta", "Continuous<Beta, {}>", 2, NumberKind::floating},
    ParametricDistribution{"standard_t", "Continuous<StandardT, {}>", 1, NumberKind::floating},
    ParametricDistribution{"poisson", "Discrete<Poisson, {}>", 1, NumberKind::whole},
    ParametricDistribution{"binomial", "Discrete<Binomial, {}>", 2, NumberKind::whole},
    ParametricDistribution{"geometric", "Discrete<Geometric, {}>", 1, NumberKind::whole},
    ParametricDistribution{"negative_binomial", "Discrete<NegativeBinomial, {}>", 2,
                           NumberKind::whole},
    ParametricDistribution{"zipf", "Discrete<Zipf, {}>", 1, NumberKind::whole},
};

/// As the kernel has it.
struct ParameterValues {
  std::array<CUdeviceptr, kMostRandomParameters> array = {};
  std::array<double, kMostRandomParameters> value = {};
};

const Family& parametric_family() {
  static const auto& made = *new Family("parametric.cu", text::parametric_cu);
  return made;
}

std::size_t parametric_index(std::string_view kind) {
  const auto* found = std::find_if(kParametricDistributions.begin(), kParametricDistributions.end(),
                                   [&](const auto& each) { return each.name == kind; });
  if (found == kParametricDistributions.end())
    throw InvalidArgument(format("there is no distribution \"{}\"", kind));
  return static_cast<std::size_t>(found - kParametricDistributions.begin());
}

const LazyKernel& parametric_kernel(std::size_t index, ScalarType type) {
  return parametric_family().instance(InstanceKey().add(index + 1, 6).type(type), [&] {
    std::string kind = kParametricDistributions[index].device_name;
    kind.replace(kind.find("{}"), 2, device_type(type));
    return format("random_parametric<{}, {}>", kind, device_type(type));
  });
}

void require_number_type(const Array& out, const ParametricDistribution& distribution) {
  const ScalarType type = out.type();
  const bool integer = is_signed_integer(type) || is_unsigned_integer(type);
  bool fits = false;
  const char* wanted = "";
  switch (distribution.numbers) {
    case NumberKind::floating:
      fits = is_floating(type) && scalar_size(type) > 1;
      wanted = "float16, bfloat16, float32 or float64";
      break;
    case NumberKind::whole:
      fits = is_signed_integer(type) && scalar_size(type) >= 4;
      wanted = "int32 or int64";
      break;
    case NumberKind::integer:
      fits = integer;
      wanted = "of an integer type";
      break;
    case NumberKind::real:
      fits = !is_complex(type);
      wanted = "real";
      break;
  }
  if (!fits)
    throw InvalidArgument(
        format("{} random numbers are {}, not {}", distribution.name, wanted, scalar_name(type)));
}

/// The parameters for the kernel; arrays must have `count` elements.
ParameterValues parameter_values(std::span<const RandomParameter> parameters, const Device& device,
                                 std::int64_t count) {
  ParameterValues made;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto* array = std::get_if<Array>(&parameters[i]);
    if (array == nullptr) {
      made.value[i] = std::get<double>(parameters[i]);
      continue;
    }
    if (scalar_size(array->type()) != 8 || is_complex(array->type()) || !array->is_contiguous() ||
        array->size() != count || &array->device() != &device)
      throw InvalidArgument(
          format("a parameter of {} random numbers is float64, contiguous, of as many elements, "
                 "on the same device, not {}",
                 count, array->identify()));
    made.array[i] = array->address();
  }
  return made;
}

void use_parameters_on(std::span<const RandomParameter> parameters, const Stream& stream) {
  for (const RandomParameter& each : parameters)
    if (const auto* array = std::get_if<Array>(&each)) array->use_on(stream);
}

LaunchConfig parametric_blocks(const Device& device, std::uint64_t count, const Stream& stream) {
  const auto most =
      kParametricBlocksPerProcessor *
      static_cast<std::uint64_t>(device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  return shared_blocks(ceil_div(count, kParametricThreads), most, kParametricThreads, stream);
}

void require_writable(const Array& out) {
  if (out.read_only())
    throw InvalidArgument(format("cannot write to {}: it is read-only", out.identify()));
}

}  // namespace

void fill_parametric(const Array& out, std::string_view kind,
                     std::span<const RandomParameter> parameters, const RandomState& state,
                     const Stream& stream) {
  const std::size_t index = parametric_index(kind);
  const ParametricDistribution& distribution = kParametricDistributions[index];
  if (parameters.size() != distribution.parameters)
    throw InvalidArgument(
        format("{} has {} parameters, got {}", kind, distribution.parameters, parameters.size()));
  require_writable(out);
  require_number_type(out, distribution);
  Device& device = out.device();
  const CUdeviceptr counter = state.counter_on(device);
  const ParameterValues values = parameter_values(parameters, device, out.size());
  if (out.size() == 0) return;
  const Array made =
      out.is_contiguous() ? out : Array::empty(device, out.shape(), out.type(), stream);
  const Stream on = stream ? stream : Stream::legacy(device);
  const auto count = static_cast<std::uint64_t>(out.size());
  launch(parametric_kernel(index, out.type()).on(device), parametric_blocks(device, count, on),
         made.address(), count, state.seed, state.offset, counter, values);
  made.use_on(on);
  use_parameters_on(parameters, on);
  state.use_on(on);
  if (!out.is_contiguous()) copy_elements(out, made, stream);
}

void fill_multinomial(const Array& out, const Array& chances, const RandomParameter& trials,
                      const RandomState& state, const Stream& stream) {
  require_writable(out);
  if (out.type() != ScalarType::int64 || out.ndim() == 0 || !out.is_contiguous())
    throw InvalidArgument(format("counts are int64 and contiguous, not {}", out.identify()));
  const std::int64_t outcomes = out.shape().back();
  const bool shared = chances.ndim() == 1 && chances.size() == outcomes;
  if (chances.type() != ScalarType::float64 || !chances.is_contiguous() ||
      (!shared && chances.shape() != out.shape()) || &chances.device() != &out.device())
    throw InvalidArgument(format("chances of {} are float64, contiguous, of one row or all, not {}",
                                 out.identify(), chances.identify()));
  Device& device = out.device();
  const CUdeviceptr counter = state.counter_on(device);
  const std::int64_t rows = outcomes == 0 ? 0 : out.size() / outcomes;
  const std::span<const RandomParameter> one(&trials, 1);
  const ParameterValues values = parameter_values(one, device, rows);
  if (rows == 0) return;
  const Stream on = stream ? stream : Stream::legacy(device);
  const auto count = static_cast<std::uint64_t>(rows);
  const auto columns = static_cast<std::uint64_t>(outcomes);
  const std::uint64_t step = shared ? 0 : columns;
  launch(parametric_family().instance(0, [] { return "random_multinomial<Int64>"; }).on(device),
         parametric_blocks(device, count, on), out.address(), count, columns, state.seed,
         state.offset, counter, chances.address(), step, values);
  out.use_on(on);
  chances.use_on(on);
  use_parameters_on(one, on);
  state.use_on(on);
}

}  // namespace kernwright::kernels
