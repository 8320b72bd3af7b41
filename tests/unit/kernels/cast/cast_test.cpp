// Conversions against references by search in tables of all values, without work on bits.
#include "kernels_src/cast/cast.h"

#include "kernels_src/copy/copy.h"
#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <limits>

using namespace kernwright;
using namespace kernwright::test;

namespace {

/// A small floating format by its definition: the value of each code, computed with ldexp.
struct Format {
  ScalarType type;
  int exponent_bits;
  int mantissa_bits;
  bool finite;                   ///< no infinity; only the highest code is NaN
  std::vector<double> values{};  ///< of the positive codes in order, then one step beyond

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  unsigned sign() const { return 1u << (exponent_bits + mantissa_bits); }
  unsigned first_special() const {
    return finite ? sign() - 1 : ((1u << exponent_bits) - 1) << mantissa_bits;
  }

  double value_of(unsigned positive_code) const {
    const int exponent = static_cast<int>(positive_code >> mantissa_bits);
    const auto fraction = static_cast<int>(positive_code & ((1u << mantissa_bits) - 1));
    if (exponent == 0) return std::ldexp(fraction, 1 - bias() - mantissa_bits);
    return std::ldexp((1 << mantissa_bits) + fraction, exponent - bias() - mantissa_bits);
  }

  double decode(unsigned code) const {
    const unsigned positive = code & (sign() - 1);
    double value = std::numeric_limits<double>::quiet_NaN();
    if (positive < first_special()) value = value_of(positive);
    if (!finite && positive == first_special()) value = std::numeric_limits<double>::infinity();
    return (code & sign()) != 0 ? -value : value;
  }

  /// The nearest code, the even one of two equally near; first_special() beyond the range.
  unsigned encode(double x) const {
    const unsigned negative = std::signbit(x) ? sign() : 0;
    const double magnitude = std::fabs(x);
    if (magnitude >= values.back()) return negative | first_special();
    const auto above = std::upper_bound(values.begin(), values.end(), magnitude);
    const auto code = static_cast<unsigned>(above - values.begin()) - 1;
    const double down = magnitude - values[code];
    const double up = values[code + 1] - magnitude;
    const bool take_up = up < down || (up == down && code % 2 == 1);
    return negative | (code + (take_up ? 1 : 0));
  }
};

const std::vector<Format>& formats() {
  static const std::vector<Format> all = [] {
    std::vector<Format> made = {{ScalarType::float16, 5, 10, false},
                                {ScalarType::bfloat16, 8, 7, false},
                                {ScalarType::float8_e4m3fn, 4, 3, true},
                                {ScalarType::float8_e5m2, 5, 2, false}};
    for (Format& format : made) {
      for (unsigned code = 0; code <= format.first_special(); ++code) {
        format.values.push_back(format.value_of(code));
      }
    }
    return made;
  }();
  return all;
}

template <typename T>
Array upload(const std::vector<T>& values, ScalarType type) {
  const auto count = static_cast<std::int64_t>(values.size() * sizeof(T) / scalar_size(type));
  return Array::from_host(device(), values.data(), {count}, type);
}

template <typename T>
std::vector<T> download(const Array& array) {
  std::vector<T> values(array.nbytes() / sizeof(T));
  array.to_host(values.data());
  return values;
}

template <typename To, typename From>
std::vector<To> converted(const std::vector<From>& values, ScalarType from, ScalarType to) {
  return download<To>(kernels::cast(upload(values, from), to));
}

/// Numbers near every rounding border of a format, and far from all.
std::vector<double> border_values(const Format& format) {
  std::vector<double> all = {0.0, 1e-300, 5e-324, 1e300};
  const std::size_t step = format.values.size() > 1000 ? 61 : 1;
  for (std::size_t i = 0; i + 1 < format.values.size(); i += step) {
    const double middle = (format.values[i] + format.values[i + 1]) / 2;
    all.insert(all.end(), {format.values[i], middle, std::nextafter(middle, 1e308),
                           std::nextafter(middle, 0.0), middle * (1 + 1e-6), middle * (1 - 1e-6)});
  }
  all.push_back(std::numeric_limits<double>::infinity());
  all.push_back(std::numeric_limits<double>::quiet_NaN());
  const std::size_t positive = all.size();
  for (std::size_t i = 0; i < positive; ++i) all.push_back(-all[i]);
  return all;
}

unsigned code_at(const std::vector<unsigned char>& bytes, std::size_t size, std::size_t i) {
  return size == 1 ? bytes[i] : bytes[2 * i] | (static_cast<unsigned>(bytes[2 * i + 1]) << 8);
}

/// How many codes differ from the reference; NaNs are alike but for their sign.
template <typename From>
int wrong_codes(const Format& format, const std::vector<From>& values, ScalarType from) {
  const auto bytes = converted<unsigned char>(values, from, format.type);
  int wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const unsigned code = code_at(bytes, scalar_size(format.type), i);
    const auto x = static_cast<double>(values[i]);
    // A conversion of float64 may lose the sign of a NaN.
    const bool same_sign = sizeof(From) == 8 || ((code & format.sign()) != 0) == std::signbit(x);
    const bool same =
        std::isnan(x) ? std::isnan(format.decode(code)) && same_sign : code == format.encode(x);
    wrong += same ? 0 : 1;
  }
  return wrong;
}

std::vector<double> integer_border_values() {
  std::vector<double> all;
  for (const double border :
       {0.0, 1.0, 127.0, 128.0, 255.0, 256.0, 32767.0, 65535.0, 2147483647.0, 2147483648.0,
        4294967295.0, 9007199254740993.0, 9223372036854775807.0, 18446744073709551615.0, 1e30}) {
    for (const double near : {border, border + 0.5, border - 0.5, std::nextafter(border, 0.0),
                              std::nextafter(border, 1e300), border + 1}) {
      all.insert(all.end(), {near, -near});
    }
  }
  all.insert(all.end(), {std::nan(""), HUGE_VAL, -HUGE_VAL});
  return all;
}

/// The rule of cast.h, in wide integers.
template <typename To>
To truncated(double x) {
  const auto low64 = std::numeric_limits<std::int64_t>::min();
  const bool fits = x >= -9223372036854775808.0 && x < 9223372036854775808.0;
  const std::int64_t wide = fits ? static_cast<std::int64_t>(x) : low64;
  if constexpr (std::is_same_v<To, std::uint64_t>) {
    if (x >= 9223372036854775808.0) {
      return x < 18446744073709551616.0 ? static_cast<std::uint64_t>(x) : 0;
    }
  }
  if constexpr (sizeof(To) == 8 || std::is_same_v<To, std::uint32_t>) {
    return static_cast<To>(wide);
  } else {
    const bool fits32 = wide >= std::numeric_limits<std::int32_t>::min() &&
                        wide <= std::numeric_limits<std::int32_t>::max();
    return static_cast<To>(fits32 ? wide : std::numeric_limits<std::int32_t>::min());
  }
}

template <typename To>
void check_truncation(ScalarType to) {
  CAPTURE(scalar_name(to));
  const auto values = integer_border_values();
  std::vector<float> narrow(values.begin(), values.end());
  std::vector<To> expected;
  std::vector<To> expected_narrow;
  for (const double value : values) expected.push_back(truncated<To>(value));
  for (const float value : narrow) expected_narrow.push_back(truncated<To>(value));
  CHECK(converted<To>(values, ScalarType::float64, to) == expected);
  CHECK(converted<To>(narrow, ScalarType::float32, to) == expected_narrow);
}

std::vector<std::uint64_t> integers() {
  std::vector<std::uint64_t> all;
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    all.insert(all.end(), {power, power - 1, power + 1, 0 - power, power | (power >> 1) | 1});
  }
  return all;
}

template <typename To, typename From>
void check_plain(ScalarType from, ScalarType to) {
  CAPTURE(scalar_name(from));
  CAPTURE(scalar_name(to));
  std::vector<From> values;
  std::vector<To> expected;
  for (const std::uint64_t bits : integers()) {
    values.push_back(static_cast<From>(bits));
    expected.push_back(static_cast<To>(values.back()));
  }
  CHECK(converted<To>(values, from, to) == expected);
}

}  // namespace

TEST_CASE("cast: every code of the small formats to float32 and float64") {
  for (const Format& format : formats()) {
    CAPTURE(scalar_name(format.type));
    std::vector<unsigned char> codes;
    for (unsigned code = 0; code < 2 * format.sign(); ++code) {
      codes.push_back(static_cast<unsigned char>(code));
      if (scalar_size(format.type) == 2) codes.push_back(static_cast<unsigned char>(code >> 8));
    }
    const auto floats = converted<float>(codes, format.type, ScalarType::float32);
    const auto doubles = converted<double>(codes, format.type, ScalarType::float64);
    REQUIRE(floats.size() == 2 * format.sign());
    int wrong = 0;
    for (unsigned code = 0; code < 2 * format.sign(); ++code) {
      const double expected = format.decode(code);
      const auto same = [&](double got) {
        return std::isnan(expected)
                   ? std::isnan(got)
                   : got == expected && std::signbit(got) == std::signbit(expected);
      };
      wrong += same(floats[code]) && same(doubles[code]) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("cast: float32 and float64 to the small formats, at every rounding border") {
  for (const Format& format : formats()) {
    CAPTURE(scalar_name(format.type));
    const auto values = border_values(format);
    std::vector<float> narrow;
    for (const double value : values) narrow.push_back(static_cast<float>(value));
    CHECK(wrong_codes(format, narrow, ScalarType::float32) == 0);
    CHECK(wrong_codes(format, values, ScalarType::float64) == 0);
  }
}

TEST_CASE("cast: integers and booleans to the small formats") {
  std::vector<std::int64_t> values;
  for (const std::uint64_t bits : integers()) values.push_back(static_cast<std::int64_t>(bits));
  for (const Format& format : formats()) {
    CAPTURE(scalar_name(format.type));
    CHECK(wrong_codes(format, values, ScalarType::int64) == 0);
    CHECK(wrong_codes(format, std::vector<unsigned char>{0, 1}, ScalarType::boolean) == 0);
  }
}

TEST_CASE("cast: one small format to another") {
  const Format& half = formats()[0];
  std::vector<unsigned char> codes;
  std::vector<double> values;
  for (unsigned code = 0; code < 2 * half.sign(); code += 3) {
    codes.push_back(static_cast<unsigned char>(code));
    codes.push_back(static_cast<unsigned char>(code >> 8));
    values.push_back(half.decode(code));
  }
  for (const Format& format : formats()) {
    if (format.type == half.type) continue;
    CAPTURE(scalar_name(format.type));
    const auto bytes = converted<unsigned char>(codes, half.type, format.type);
    int wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const unsigned code = code_at(bytes, scalar_size(format.type), i);
      const bool same = std::isnan(values[i]) ? std::isnan(format.decode(code))
                                              : code == format.encode(values[i]);
      wrong += same ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("cast: floating to integer drops the fraction, beyond the range as documented") {
  check_truncation<std::int8_t>(ScalarType::int8);
  check_truncation<std::uint8_t>(ScalarType::uint8);
  check_truncation<std::int16_t>(ScalarType::int16);
  check_truncation<std::uint16_t>(ScalarType::uint16);
  check_truncation<std::int32_t>(ScalarType::int32);
  check_truncation<std::uint32_t>(ScalarType::uint32);
  check_truncation<std::int64_t>(ScalarType::int64);
  check_truncation<std::uint64_t>(ScalarType::uint64);
}

TEST_CASE("cast: integers wrap around, and round to nearest as floating numbers") {
  check_plain<std::int8_t, std::int64_t>(ScalarType::int64, ScalarType::int8);
  check_plain<std::uint8_t, std::int64_t>(ScalarType::int64, ScalarType::uint8);
  check_plain<std::int16_t, std::uint32_t>(ScalarType::uint32, ScalarType::int16);
  check_plain<std::uint16_t, std::int8_t>(ScalarType::int8, ScalarType::uint16);
  check_plain<std::int32_t, std::uint64_t>(ScalarType::uint64, ScalarType::int32);
  check_plain<std::uint32_t, std::int16_t>(ScalarType::int16, ScalarType::uint32);
  check_plain<std::int64_t, std::uint8_t>(ScalarType::uint8, ScalarType::int64);
  check_plain<std::uint64_t, std::int32_t>(ScalarType::int32, ScalarType::uint64);
  check_plain<float, std::int64_t>(ScalarType::int64, ScalarType::float32);
  check_plain<float, std::uint64_t>(ScalarType::uint64, ScalarType::float32);
  check_plain<double, std::int64_t>(ScalarType::int64, ScalarType::float64);
  check_plain<double, std::uint64_t>(ScalarType::uint64, ScalarType::float64);
  check_plain<double, std::uint16_t>(ScalarType::uint16, ScalarType::float64);
}

TEST_CASE("cast: everything but zero is true") {
  using Bytes = std::vector<unsigned char>;
  const std::vector<double> doubles = {0.0, -0.0, 5e-324, -1.0, std::nan(""), HUGE_VAL};
  CHECK(converted<unsigned char>(doubles, ScalarType::float64, ScalarType::boolean) ==
        Bytes{0, 0, 1, 1, 1, 1});
  const std::vector<std::int64_t> wide = {0, 1, -1, std::int64_t{1} << 40};
  CHECK(converted<unsigned char>(wide, ScalarType::int64, ScalarType::boolean) ==
        Bytes{0, 1, 1, 1});
  const std::vector<unsigned char> small = {0x00, 0x80, 0x01, 0x7f};
  CHECK(converted<unsigned char>(small, ScalarType::float8_e4m3fn, ScalarType::boolean) ==
        Bytes{0, 0, 1, 1});
  const std::vector<std::complex<float>> complex = {{0, 0}, {0, 1}, {2, 0}, {0, std::nanf("")}};
  CHECK(converted<unsigned char>(complex, ScalarType::complex64, ScalarType::boolean) ==
        Bytes{0, 1, 1, 1});
  // Any other byte of a bool counts as true, and becomes 1.
  const std::vector<unsigned char> loose = {0, 1, 2, 255};
  CHECK(converted<std::int32_t>(loose, ScalarType::boolean, ScalarType::int32) ==
        std::vector<std::int32_t>{0, 1, 1, 1});
}

TEST_CASE("cast: complex numbers") {
  using Complex64 = std::complex<float>;
  using Complex128 = std::complex<double>;
  const std::vector<Complex128> values = {{1.1, -2.2}, {-0.0, 1e300}, {3.9, 0.0}};
  CHECK(converted<Complex64>(values, ScalarType::complex128, ScalarType::complex64) ==
        std::vector<Complex64>{{1.1f, -2.2f}, {-0.0f, HUGE_VALF}, {3.9f, 0.0f}});
  CHECK(converted<double>(values, ScalarType::complex128, ScalarType::float64) ==
        std::vector<double>{1.1, -0.0, 3.9});
  CHECK(converted<std::int16_t>(values, ScalarType::complex128, ScalarType::int16) ==
        std::vector<std::int16_t>{1, 0, 3});
  const std::vector<float> reals = {1.5f, -2.0f};
  CHECK(converted<Complex128>(reals, ScalarType::float32, ScalarType::complex128) ==
        std::vector<Complex128>{{1.5, 0.0}, {-2.0, 0.0}});
  const std::vector<std::uint8_t> whole = {7, 255};
  CHECK(converted<Complex64>(whole, ScalarType::uint8, ScalarType::complex64) ==
        std::vector<Complex64>{{7, 0}, {255, 0}});
}

TEST_CASE("cast: strided views, empty arrays, the same type") {
  std::vector<std::int32_t> numbers(60);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i);
  const Array base = Array::from_host(device(), numbers.data(), {5, 12}, ScalarType::int32);
  const Array view = base.slice(1, 11, 4, -3).transpose();
  const Array made = kernels::cast(view, ScalarType::float64);
  CHECK(made.is_contiguous());
  CHECK(made.shape() == Shape{4, 5});
  std::vector<double> expected;
  for (int column = 11; column > 0; column -= 3) {
    for (int row = 0; row < 5; ++row) expected.push_back(12 * row + column);
  }
  CHECK(download<double>(made) == expected);

  const Array none = kernels::cast(base.slice(0, 0, 0, 1), ScalarType::float16);
  CHECK(none.shape() == Shape{0, 12});
  CHECK(none.type() == ScalarType::float16);
  const Array same = kernels::cast(base, ScalarType::int32);
  CHECK(same.address() != base.address());
  CHECK(download<std::int32_t>(same) == numbers);
  CHECK(download<float>(kernels::cast(base.drop_axis(0, 4).drop_axis(0, 11),
                                      ScalarType::float32)) == std::vector<float>{59.0f});
}

TEST_CASE("cast: views whose rows are one pack") {
  for (const ScalarType type : {ScalarType::uint8, ScalarType::float32, ScalarType::int64}) {
    const Array whole = patterned({16, 3, 16}, type);
    for (const std::int64_t n : {2, 4, 8, 16}) {
      for (const Array& rows : {whole.slice(0, 8, 4, 2), whole.slice(0, 15, 8, -1)}) {
        const Array view = rows.slice(2, 0, n, 1);
        CHECK(bytes_of(kernels::cast(view, ScalarType::float64)) ==
              bytes_of(kernels::cast(kernels::copy(view), ScalarType::float64)));
      }
    }
  }
}
