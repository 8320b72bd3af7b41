// Numbers read from memory of any type, and written to it.
#include "core/number.h"

#include "base/format.h"
#include "base/small_float.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

namespace kernwright {
namespace {

template <typename T>
T load(const void* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
Number signed_at(const void* from) noexcept {
  return Number::make(std::int64_t{load<T>(from)});
}

template <typename T>
Number unsigned_at(const void* from) noexcept {
  return Number::make(std::uint64_t{load<T>(from)});
}

template <typename T>
Number complex_at(const void* from) noexcept {
  const auto value = load<std::complex<T>>(from);
  return Number::make(double{value.real()}, double{value.imag()});
}

template <typename T>
Fit store_integer(const Number& number, void* to) noexcept {
  if (number.kind == Number::Kind::huge) return Fit::out_of_range;
  if (number.kind != Number::Kind::integer) return Fit::wrong_kind;
  if constexpr (std::numeric_limits<T>::is_signed) {
    const auto value = static_cast<std::int64_t>(number.bits);
    const bool fits = number.negative == (value < 0) && value >= std::numeric_limits<T>::min() &&
                      value <= std::numeric_limits<T>::max();
    if (!fits) return Fit::out_of_range;
  } else if (number.negative || number.bits > std::numeric_limits<T>::max()) {
    return Fit::out_of_range;
  }
  const T value = static_cast<T>(number.bits);
  std::memcpy(to, &value, sizeof value);
  return Fit::exact;
}

Fit store_bool(const Number& number, void* to) noexcept {
  if (number.kind == Number::Kind::huge) return Fit::out_of_range;
  if (number.kind != Number::Kind::integer) return Fit::wrong_kind;
  if (number.negative || number.bits > 1) return Fit::out_of_range;
  const auto value = static_cast<std::uint8_t>(number.bits);
  std::memcpy(to, &value, sizeof value);
  return Fit::exact;
}

Fit store_float(double value, void* to) noexcept {
  const auto narrow = static_cast<float>(value);
  std::memcpy(to, &narrow, sizeof narrow);
  return std::isinf(narrow) && std::isfinite(value) ? Fit::out_of_range : Fit::exact;
}

Fit store_real(const Number& number, ScalarType type, void* to) noexcept {
  if (number.kind == Number::Kind::none || number.kind == Number::Kind::complex) {
    return Fit::wrong_kind;
  }
  const double value = number.as_double();
  if (number.kind == Number::Kind::huge && std::isinf(value)) return Fit::out_of_range;
  if (type == ScalarType::float32) return store_float(value, to);
  if (type != ScalarType::float64) {
    return encode_small_float(value, type, to) ? Fit::exact : Fit::out_of_range;
  }
  std::memcpy(to, &value, sizeof value);
  return Fit::exact;
}

Fit store_complex(const Number& number, ScalarType type, void* to) noexcept {
  if (number.kind == Number::Kind::none) return Fit::wrong_kind;
  const bool wide = type == ScalarType::complex128;
  Number part = Number::make(number.as_double());
  part.kind = number.kind == Number::Kind::huge ? Number::Kind::huge : Number::Kind::real;
  const ScalarType part_type = wide ? ScalarType::float64 : ScalarType::float32;
  const Fit real = store_real(part, part_type, to);
  const Fit imaginary = store_real(Number::make(number.imaginary), part_type,
                                   static_cast<char*>(to) + (wide ? 8 : 4));
  return real == Fit::exact ? imaginary : real;
}

/// The integer type of `size` bytes.
ScalarType integer_type(bool is_signed, std::size_t size) noexcept {
  const int width = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
  const ScalarType first = is_signed ? ScalarType::int8 : ScalarType::uint8;
  return static_cast<ScalarType>(static_cast<int>(first) + width);
}

}  // namespace

Number Number::make(std::int64_t value) noexcept {
  Number number;
  number.kind = Kind::integer;
  number.negative = value < 0;
  number.bits = static_cast<std::uint64_t>(value);
  return number;
}

Number Number::make(std::uint64_t value) noexcept {
  Number number;
  number.kind = Kind::integer;
  number.bits = value;
  return number;
}

Number Number::make(double value) noexcept {
  Number number;
  number.kind = Kind::real;
  number.real = value;
  return number;
}

Number Number::make(double real_part, double imaginary_part) noexcept {
  Number number = make(real_part);
  number.kind = Kind::complex;
  number.imaginary = imaginary_part;
  return number;
}

Number Number::read(ScalarType type, const void* from) noexcept {
  switch (type) {
    case ScalarType::boolean:
      return make(std::uint64_t{load<std::uint8_t>(from) != 0 ? 1U : 0U});
    case ScalarType::int8:
      return signed_at<std::int8_t>(from);
    case ScalarType::int16:
      return signed_at<std::int16_t>(from);
    case ScalarType::int32:
      return signed_at<std::int32_t>(from);
    case ScalarType::int64:
      return signed_at<std::int64_t>(from);
    case ScalarType::uint8:
      return unsigned_at<std::uint8_t>(from);
    case ScalarType::uint16:
      return unsigned_at<std::uint16_t>(from);
    case ScalarType::uint32:
      return unsigned_at<std::uint32_t>(from);
    case ScalarType::uint64:
      return unsigned_at<std::uint64_t>(from);
    case ScalarType::float32:
      return make(double{load<float>(from)});
    case ScalarType::float64:
      return make(load<double>(from));
    case ScalarType::complex64:
      return complex_at<float>(from);
    case ScalarType::complex128:
      return complex_at<double>(from);
    default:
      return make(decode_small_float(type, from));
  }
}

double Number::as_double() const noexcept {
  if (kind != Kind::integer) return real;
  return negative ? static_cast<double>(static_cast<std::int64_t>(bits))
                  : static_cast<double>(bits);
}

bool Number::is_true() const noexcept {
  return kind == Kind::integer ? bits != 0 : real != 0 || imaginary != 0;
}

std::string Number::to_string() const {
  switch (kind) {
    case Kind::integer:
      return negative ? format("{}", static_cast<std::int64_t>(bits)) : format("{}", bits);
    case Kind::complex:
      return format("{}{:+}j", real, imaginary);
    case Kind::none:
      return "no number";
    default:
      return format("{}", real);
  }
}

Fit encode(const Number& number, ScalarType type, void* to) noexcept {
  switch (type) {
    case ScalarType::boolean:
      return store_bool(number, to);
    case ScalarType::int8:
      return store_integer<std::int8_t>(number, to);
    case ScalarType::int16:
      return store_integer<std::int16_t>(number, to);
    case ScalarType::int32:
      return store_integer<std::int32_t>(number, to);
    case ScalarType::int64:
      return store_integer<std::int64_t>(number, to);
    case ScalarType::uint8:
      return store_integer<std::uint8_t>(number, to);
    case ScalarType::uint16:
      return store_integer<std::uint16_t>(number, to);
    case ScalarType::uint32:
      return store_integer<std::uint32_t>(number, to);
    case ScalarType::uint64:
      return store_integer<std::uint64_t>(number, to);
    case ScalarType::complex64:
    case ScalarType::complex128:
      return store_complex(number, type, to);
    default:
      return store_real(number, type, to);
  }
}

Fit encode_untyped(const Number& number, std::size_t size, void* to) noexcept {
  const bool is_signed = number.kind == Number::Kind::integer && number.negative;
  return encode(number, integer_type(is_signed, size), to);
}

std::string range_text(ScalarType type) {
  switch (type) {
    case ScalarType::boolean:
      return "0 ... 1";
    case ScalarType::float16:
      return "-65504 ... 65504";
    case ScalarType::bfloat16:
      return "-3.39e38 ... 3.39e38";
    case ScalarType::float32:
    case ScalarType::complex64:
      return "-3.40e38 ... 3.40e38";
    case ScalarType::float8_e4m3fn:
      return "-448 ... 448";
    case ScalarType::float8_e5m2:
      return "-57344 ... 57344";
    case ScalarType::float64:
    case ScalarType::complex128:
      return "-1.80e308 ... 1.80e308";
    default:
      break;
  }
  const int bits = static_cast<int>(scalar_size(type)) * 8;
  if (is_unsigned_integer(type)) return format("0 ... {}", ~std::uint64_t{0} >> (64 - bits));
  const std::int64_t largest = static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits));
  return format("{} ... {}", -largest - 1, largest);
}

const char* number_family(ScalarType type) noexcept {
  if (type == ScalarType::boolean) return "a bool";
  if (is_complex(type)) return "a number";
  return is_floating(type) ? "a real number" : "an integer";
}

}  // namespace kernwright
