// Arguments on the host: sizes, single elements, text.
#include "tune/judge/host_value.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "base/errors.h"
#include "base/format.h"
#include "base/small_float.h"

namespace kernwright {
namespace {

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename Test>
std::optional<std::int64_t> first_where(const HostValue& value, const Test& test) {
  const bool complex = is_complex(value.dtype);
  if (!value.is_array() || !(complex || is_floating(value.dtype))) return std::nullopt;
  const std::size_t size = scalar_size(value.dtype);
  for (std::size_t i = 0; (i + 1) * size <= value.bytes.size(); ++i) {
    const std::byte* element = &value.bytes[i * size];
    if (test(element_as_double(value.dtype, element)) ||
        (complex && test(element_as_double(value.dtype, element, 1)))) {
      return static_cast<std::int64_t>(i);
    }
  }
  return std::nullopt;
}

}  // namespace

HostValue HostValue::make_integer(std::int64_t value) {
  HostValue made;
  made.kind = Kind::integer;
  made.integer = value;
  return made;
}

HostValue HostValue::make_real(double value) {
  HostValue made;
  made.kind = Kind::real;
  made.real = value;
  return made;
}

HostValue HostValue::make_array(ScalarType dtype, std::vector<std::int64_t> shape,
                                std::span<const std::byte> bytes) {
  HostValue made;
  made.dtype = dtype;
  made.shape = std::move(shape);
  made.bytes.assign(bytes.begin(), bytes.end());
  const auto count = static_cast<std::uint64_t>(made.elements());
  if (count * scalar_size(dtype) != bytes.size()) {
    throw InvalidArgument(format("{} has {} bytes, not {}", made.to_string(),
                                 count * scalar_size(dtype), bytes.size()));
  }
  return made;
}

std::int64_t HostValue::elements() const noexcept {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::string HostValue::to_string() const {
  switch (kind) {
    case Kind::integer:
      return format("{}", integer);
    case Kind::real:
      return format("{}", real);
    case Kind::bytes:
      return format("bytes[{}]", bytes.size());
    case Kind::null:
      return "null";
    case Kind::array:
      break;
  }
  return format("{}[{}]", scalar_name(dtype), fmt::join(shape, ", "));
}

double element_as_double(ScalarType dtype, const std::byte* element, int part) noexcept {
  switch (dtype) {
    case ScalarType::boolean:
    case ScalarType::uint8:
      return load<std::uint8_t>(element);
    case ScalarType::int8:
      return load<std::int8_t>(element);
    case ScalarType::int16:
      return load<std::int16_t>(element);
    case ScalarType::int32:
      return load<std::int32_t>(element);
    case ScalarType::int64:
      return static_cast<double>(load<std::int64_t>(element));
    case ScalarType::uint16:
      return load<std::uint16_t>(element);
    case ScalarType::uint32:
      return load<std::uint32_t>(element);
    case ScalarType::uint64:
      return static_cast<double>(load<std::uint64_t>(element));
    case ScalarType::float32:
      return load<float>(element);
    case ScalarType::float64:
      return load<double>(element);
    case ScalarType::float16:
    case ScalarType::bfloat16:
    case ScalarType::float8_e4m3fn:
    case ScalarType::float8_e5m2:
      return decode_small_float(dtype, element);
    case ScalarType::complex64:
      return load<float>(element + 4 * part);
    case ScalarType::complex128:
      return load<double>(element + 8 * part);
  }
  return 0;
}

std::string element_text(ScalarType dtype, const std::byte* element) {
  switch (dtype) {
    case ScalarType::boolean:
      return load<std::uint8_t>(element) != 0 ? "True" : "False";
    case ScalarType::int64:
      return format("{}", load<std::int64_t>(element));
    case ScalarType::uint64:
      return format("{}", load<std::uint64_t>(element));
    case ScalarType::float32:
      return format("{}", load<float>(element));
    default:
      break;
  }
  const double real = element_as_double(dtype, element);
  if (!is_complex(dtype)) return format("{}", real);
  return format("({}{:+}j)", real, element_as_double(dtype, element, 1));
}

namespace {

/// Whether each number times 0 is 0, which holds only for finite ones: this loop vectorizes.
template <typename Float>
bool all_finite(const HostValue& value) {
  const auto* numbers = reinterpret_cast<const Float*>(value.bytes.data());
  const auto count = value.bytes.size() / sizeof(Float);
  bool finite = true;
  for (std::size_t i = 0; i < count; ++i) finite &= numbers[i] * 0 == 0;
  return finite;
}

/// The quick answer for common types; false: look closely.
bool is_surely_finite(const HostValue& value) {
  if (value.dtype == ScalarType::float32) return all_finite<float>(value);
  return value.dtype == ScalarType::float64 && all_finite<double>(value);
}

}  // namespace

std::optional<std::int64_t> first_nan(const HostValue& value) {
  if (is_surely_finite(value)) return std::nullopt;
  return first_where(value, [](double number) { return std::isnan(number); });
}

std::optional<std::int64_t> first_not_finite(const HostValue& value) {
  if (is_surely_finite(value)) return std::nullopt;
  return first_where(value, [](double number) { return !std::isfinite(number); });
}

std::string index_text(std::span<const std::int64_t> shape, std::int64_t flat) {
  if (shape.empty()) return "";
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = shape[i] > 0 ? flat % shape[i] : 0;
    flat = shape[i] > 0 ? flat / shape[i] : 0;
  }
  return format("[{}]", fmt::join(index, ", "));
}

}  // namespace kernwright
