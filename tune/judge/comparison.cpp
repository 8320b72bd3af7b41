// Compares arrays element by element.
#include "tune/judge/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/errors.h"
#include "base/format.h"

namespace kernwright {
namespace {

/// Largest finite and smallest normal number of a floating type.
struct Range {
  double most = std::numeric_limits<double>::max();
  double least = std::numeric_limits<double>::min();
};

Range type_range(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::float32:
    case ScalarType::complex64:
      return {std::numeric_limits<float>::max(), std::numeric_limits<float>::min()};
    case ScalarType::float16:
      return {65504, std::ldexp(1, -14)};
    case ScalarType::bfloat16:
      return {std::ldexp(255, 120), std::ldexp(1, -126)};
    case ScalarType::float8_e4m3fn:
      return {448, std::ldexp(1, -6)};
    case ScalarType::float8_e5m2:
      return {57344, std::ldexp(1, -14)};
    default:
      return {};
  }
}

bool is_integer(ScalarType dtype) { return !is_floating(dtype) && !is_complex(dtype); }

class Comparer {
 public:
  Comparer(ScalarType got, Tolerance tolerance)
      : range_(type_range(got)),
        tolerance_(tolerance),
        is_floating_(is_floating(got) || is_complex(got)) {}

  bool is_right(double got, double expected) {
    if (std::isnan(expected) || std::isnan(got)) {
      return (std::isnan(expected) && std::isnan(got)) || not_finite();
    }
    if (is_floating_ && std::abs(expected) > range_.most && !std::isinf(expected)) {
      const double limit = std::copysign(range_.most, expected);
      if (got == limit || (std::isinf(got) && (got > 0) == (expected > 0))) return true;
    }
    if (std::isinf(expected) || std::isinf(got)) return got == expected || not_finite();
    const double error = std::abs(got - expected);
    if (error <= tolerance_.absolute + tolerance_.relative * std::abs(expected)) return true;
    if (is_floating_ && tolerance_.relative > 0 && got == 0 && std::abs(expected) < range_.least) {
      return true;
    }
    add_error(error);
    return false;
  }
  void add_error(double error) { largest_ = std::max(largest_, error); }
  double largest() const { return largest_; }
  /// Whether a number without an error was wrong since the last call.
  bool take_not_finite() { return std::exchange(not_finite_, false); }

 private:
  bool not_finite() {
    not_finite_ = true;
    return false;
  }

  Range range_;
  Tolerance tolerance_;
  bool is_floating_;
  bool not_finite_ = false;
  double largest_ = 0;
};

/// Whether all elements are within the tolerance: the usual case. Special values are not.
template <typename Got, typename Expected>
bool all_within(const HostValue& got, const HostValue& expected, Tolerance tolerance) {
  const auto* a = reinterpret_cast<const Got*>(got.bytes.data());
  const auto* b = reinterpret_cast<const Expected*>(expected.bytes.data());
  const auto count = static_cast<std::size_t>(got.elements());
  bool within = true;
  for (std::size_t i = 0; i < count; ++i) {
    const double wanted = b[i];
    const double size = std::abs(wanted);
    within &= size <= std::numeric_limits<double>::max();
    within &= std::abs(a[i] - wanted) <= tolerance.absolute + tolerance.relative * size;
  }
  return within;
}

/// The quick answer for common types; false: look closely.
bool is_close(const HostValue& got, const HostValue& expected, Tolerance tolerance) {
  if (got.dtype == expected.dtype && got.bytes == expected.bytes) return true;
  const bool to_float = expected.dtype == ScalarType::float32;
  if (!to_float && expected.dtype != ScalarType::float64) return false;
  if (got.dtype == ScalarType::float32) {
    return to_float ? all_within<float, float>(got, expected, tolerance)
                    : all_within<float, double>(got, expected, tolerance);
  }
  return got.dtype == ScalarType::float64 && !to_float &&
         all_within<double, double>(got, expected, tolerance);
}

std::uint64_t integer_bits(ScalarType dtype, const std::byte* element) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, scalar_size(dtype));
  const unsigned unused = 64 - 8 * static_cast<unsigned>(scalar_size(dtype));
  if (is_signed_integer(dtype) && unused > 0) {
    bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused);
  }
  return dtype == ScalarType::boolean ? std::uint64_t{bits != 0} : bits;
}

/// Integers of 64 bits have no exact double. Of unlike signs they differ where the top bit is set.
bool equal_integers(const HostValue& got, const HostValue& expected, const std::byte* a,
                    const std::byte* b) {
  const std::uint64_t left = integer_bits(got.dtype, a);
  const std::uint64_t right = integer_bits(expected.dtype, b);
  if (left != right) return false;
  return is_signed_integer(got.dtype) == is_signed_integer(expected.dtype) || left >> 63U == 0;
}

/// |a - b| of integers; as doubles, different ones could be equal.
double integer_error(const HostValue& got, const HostValue& expected, const std::byte* a,
                     const std::byte* b) {
  const auto number = [](const HostValue& value, const std::byte* element) {
    const std::uint64_t bits = integer_bits(value.dtype, element);
    return is_signed_integer(value.dtype)
               ? static_cast<long double>(static_cast<std::int64_t>(bits))
               : static_cast<long double>(bits);
  };
  return static_cast<double>(std::abs(number(got, a) - number(expected, b)));
}

/// Whether some integer of the type is right where `element` is expected.
bool holds_integer(ScalarType type, const HostValue& expected, const std::byte* element,
                   Tolerance tolerance) {
  const bool is_signed = is_signed_integer(type);
  const int bits = type == ScalarType::boolean ? 1 : 8 * static_cast<int>(scalar_size(type));
  const long double most = std::ldexp(1.0L, is_signed ? bits - 1 : bits) - 1;
  const long double least = is_signed ? -most - 1 : 0.0L;
  long double wanted = 0;
  if (is_integer(expected.dtype)) {
    const std::uint64_t word = integer_bits(expected.dtype, element);
    wanted = is_signed_integer(expected.dtype)
                 ? static_cast<long double>(static_cast<std::int64_t>(word))
                 : static_cast<long double>(word);
  } else {
    wanted = element_as_double(expected.dtype, element);
  }
  if (!std::isfinite(wanted)) return false;
  const long double nearest = std::clamp(std::round(wanted), least, most);
  return std::abs(nearest - wanted) <= tolerance.absolute + tolerance.relative * std::abs(wanted);
}

}  // namespace

Tolerance default_tolerance(ScalarType dtype) noexcept {
  switch (dtype) {
    case ScalarType::float16:
      return {1e-3, 1e-5};
    case ScalarType::bfloat16:
      return {1.6e-2, 1e-5};
    case ScalarType::float32:
    case ScalarType::complex64:
      return {1.3e-6, 1e-5};
    case ScalarType::float64:
    case ScalarType::complex128:
      return {1e-7, 1e-7};
    case ScalarType::float8_e4m3fn:
      return {0.125, 0.02};
    case ScalarType::float8_e5m2:
      return {0.25, 0.02};
    default:
      return {};
  }
}

std::string Difference::to_string() const {
  std::string text = format("{} is {}, expected {}", place.empty() ? "it" : place, got, expected);
  if (elements <= 1) return text;
  text += format(" ({} of {} elements differ", count, elements);
  if (not_finite == count) {
    text += ", all by NaN or infinity";
  } else if (not_finite > 0) {
    text +=
        format(": {} by NaN or infinity, the others by at most {:.6g}", not_finite, largest_error);
  } else {
    text += format(", by at most {:.6g}", largest_error);
  }
  return text + ")";
}

std::optional<Difference> compare(const HostValue& got, const HostValue& expected,
                                  Tolerance tolerance) {
  if (got.shape != expected.shape) {
    throw InvalidArgument(format("{} is compared with {}", got.to_string(), expected.to_string()));
  }
  if (is_close(got, expected, tolerance)) return std::nullopt;
  const std::size_t size = scalar_size(got.dtype);
  const std::size_t expected_size = scalar_size(expected.dtype);
  const bool exact = is_integer(got.dtype) && is_integer(expected.dtype) &&
                     tolerance.absolute == 0 && tolerance.relative == 0;
  const int parts = is_complex(got.dtype) || is_complex(expected.dtype) ? 2 : 1;
  const auto element_part = [](const HostValue& value, const std::byte* element, int part) {
    return part == 0 || is_complex(value.dtype) ? element_as_double(value.dtype, element, part)
                                                : 0.0;
  };
  Comparer comparer(got.dtype, tolerance);
  std::optional<Difference> found;
  const std::int64_t count = got.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::byte* a = &got.bytes[static_cast<std::size_t>(i) * size];
    const std::byte* b = &expected.bytes[static_cast<std::size_t>(i) * expected_size];
    // A bool has two values; programs read any other byte in their own way.
    const bool is_no_bool = got.dtype == ScalarType::boolean && std::to_integer<int>(*a) > 1;
    bool right = true;
    if (is_no_bool) {
      right = false;
      comparer.add_error(std::to_integer<int>(*a));
    } else if (exact) {
      right = equal_integers(got, expected, a, b);
      if (!right) comparer.add_error(integer_error(got, expected, a, b));
    } else {
      for (int part = 0; part < parts; ++part) {
        right =
            comparer.is_right(element_part(got, a, part), element_part(expected, b, part)) && right;
      }
    }
    if (right) continue;
    if (!found) {
      found = Difference{
          i,
          index_text(got.shape, i),
          is_no_bool ? format("the byte {}", std::to_integer<int>(*a)) : element_text(got.dtype, a),
          element_text(expected.dtype, b),
          0,
          count,
          0,
          0};
    }
    ++found->count;
    if (comparer.take_not_finite()) ++found->not_finite;
  }
  if (found) found->largest_error = comparer.largest();
  return found;
}

std::string why_unreachable(const HostValue& expected, ScalarType type, Tolerance tolerance) {
  const ScalarType declared = expected.dtype;
  const std::size_t size = scalar_size(declared);
  const auto count = static_cast<std::size_t>(expected.elements());
  const auto element = [&](std::size_t i) { return &expected.bytes[i * size]; };
  const auto at = [&](std::size_t i) {
    const std::string place = index_text(expected.shape, static_cast<std::int64_t>(i));
    return format("{}{}", place.empty() ? "" : place + " is ", element_text(declared, element(i)));
  };
  if (!is_integer(type) && is_integer(declared) && declared != ScalarType::boolean) {
    return format("integers ({}) for an array of {}: return floats, best float64",
                  scalar_name(declared), scalar_name(type));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_complex(type) && is_complex(declared) &&
        element_as_double(declared, element(i), 1) != 0) {
      return format("complex numbers for an array of {}: {}", scalar_name(type), at(i));
    }
    if (is_integer(type) && !holds_integer(type, expected, element(i), tolerance)) {
      return format("a number that an array of {} cannot hold: {}", scalar_name(type), at(i));
    }
  }
  return "";
}

}  // namespace kernwright
