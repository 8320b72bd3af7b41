// Numbers between types, against the conversions of C++.
#include "core/number.h"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <limits>

using namespace kernwright;

namespace {

/// Compares `value`, read as `from` and converted to `to`, with the conversion of C++.
template <typename To, typename From>
void check_conversion(From value, ScalarType from, ScalarType to) {
  const Number number = Number::read(from, &value);
  To got{};
  const Fit fit = encode(number, to, &got);
  const auto wide = static_cast<long double>(value);
  CAPTURE(wide);
  const bool fits = wide >= static_cast<long double>(std::numeric_limits<To>::lowest()) &&
                    wide <= static_cast<long double>(std::numeric_limits<To>::max());
  CHECK(fit == (fits ? Fit::exact : Fit::out_of_range));
  if (fit == Fit::exact) CHECK(got == static_cast<To>(value));
}

template <typename From>
void check_integers(ScalarType from) {
  using Limits = std::numeric_limits<From>;
  for (const From value : {From{0}, From{1}, From{100}, Limits::max(), Limits::lowest(),
                           static_cast<From>(Limits::max() / 2 + 1)}) {
    check_conversion<std::int8_t>(value, from, ScalarType::int8);
    check_conversion<std::int16_t>(value, from, ScalarType::int16);
    check_conversion<std::int32_t>(value, from, ScalarType::int32);
    check_conversion<std::int64_t>(value, from, ScalarType::int64);
    check_conversion<std::uint8_t>(value, from, ScalarType::uint8);
    check_conversion<std::uint16_t>(value, from, ScalarType::uint16);
    check_conversion<std::uint32_t>(value, from, ScalarType::uint32);
    check_conversion<std::uint64_t>(value, from, ScalarType::uint64);
    check_conversion<float>(value, from, ScalarType::float32);
    check_conversion<double>(value, from, ScalarType::float64);
  }
}

}  // namespace

TEST_CASE("number: integers of every type go into those that hold them") {
  check_integers<std::int8_t>(ScalarType::int8);
  check_integers<std::int16_t>(ScalarType::int16);
  check_integers<std::int32_t>(ScalarType::int32);
  check_integers<std::int64_t>(ScalarType::int64);
  check_integers<std::uint8_t>(ScalarType::uint8);
  check_integers<std::uint16_t>(ScalarType::uint16);
  check_integers<std::uint32_t>(ScalarType::uint32);
  check_integers<std::uint64_t>(ScalarType::uint64);
}

TEST_CASE("number: a real is no integer, a complex no real, and each is a complex") {
  std::int32_t integer = 0;
  CHECK(encode(Number::make(2.0), ScalarType::int32, &integer) == Fit::wrong_kind);
  float real = 0;
  CHECK(encode(Number::make(1.0, 2.0), ScalarType::float32, &real) == Fit::wrong_kind);
  CHECK(encode(Number(), ScalarType::float32, &real) == Fit::wrong_kind);
  std::complex<float> pair;
  CHECK(encode(Number::make(1.0, -2.0), ScalarType::complex64, &pair) == Fit::exact);
  CHECK(pair == std::complex<float>(1, -2));
  CHECK(encode(Number::make(std::int64_t{-3}), ScalarType::complex64, &pair) == Fit::exact);
  CHECK(pair == std::complex<float>(-3, 0));
  CHECK(encode(Number::make(0.0, 1e300), ScalarType::complex64, &pair) == Fit::out_of_range);
}

TEST_CASE("number: finite reals stay finite, infinities and NaN pass") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  float narrow = 0;
  CHECK(encode(Number::make(0.1), ScalarType::float32, &narrow) == Fit::exact);
  CHECK(narrow == 0.1f);
  CHECK(encode(Number::make(1e39), ScalarType::float32, &narrow) == Fit::out_of_range);
  CHECK(encode(Number::make(kInfinity), ScalarType::float32, &narrow) == Fit::exact);
  CHECK(std::isinf(narrow));
  CHECK(encode(Number::make(std::nan("")), ScalarType::float32, &narrow) == Fit::exact);
  CHECK(std::isnan(narrow));
}

TEST_CASE("number: code without types takes integers of either sign by their size") {
  std::uint8_t byte = 0;
  CHECK(encode_untyped(Number::make(std::uint64_t{255}), 1, &byte) == Fit::exact);
  CHECK(byte == 255);
  CHECK(encode_untyped(Number::make(std::int64_t{-128}), 1, &byte) == Fit::exact);
  CHECK(byte == 128);
  CHECK(encode_untyped(Number::make(std::int64_t{-129}), 1, &byte) == Fit::out_of_range);
  CHECK(encode_untyped(Number::make(std::uint64_t{256}), 1, &byte) == Fit::out_of_range);
  CHECK(encode_untyped(Number::make(1.0), 1, &byte) == Fit::wrong_kind);
}

TEST_CASE("number: words of messages") {
  CHECK(Number::make(std::int64_t{-5}).to_string() == "-5");
  CHECK(Number::make(~std::uint64_t{0}).to_string() == "18446744073709551615");
  CHECK(Number::make(2.5).to_string() == "2.5");
  CHECK(Number::make(1.0, -2.0).to_string() == "1-2j");
  CHECK(range_text(ScalarType::int8) == "-128 ... 127");
  CHECK(range_text(ScalarType::uint64) == "0 ... 18446744073709551615");
  CHECK(range_text(ScalarType::float16) == "-65504 ... 65504");
}

TEST_CASE("number: all but 0 are true") {
  CHECK(Number::make(std::int64_t{-1}).is_true());
  CHECK(Number::make(0.5).is_true());
  CHECK(Number::make(std::numeric_limits<double>::quiet_NaN()).is_true());
  CHECK(Number::make(0.0, 2.0).is_true());
  CHECK(!Number::make(std::uint64_t{0}).is_true());
  CHECK(!Number::make(-0.0).is_true());
  CHECK(!Number::make(0.0, 0.0).is_true());
}
