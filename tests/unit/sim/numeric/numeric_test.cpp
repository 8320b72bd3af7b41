// Every f16, bf16 and 8-bit encoding, and roundings of many values in every mode.
#include "sim/numeric/half.h"
#include "sim/numeric/integer.h"
#include "sim/numeric/rounding.h"
#include "unit/sim/numeric/numeric_reference.h"

#include <doctest/doctest.h>

#include <bit>
#include <cfenv>
#include <random>

using namespace kernwright::sim::KW_SIM_NS::numeric;
using namespace kernwright::sim::testing;
using kernwright::sim::Rounding;

namespace {

constexpr Rounding kModes[] = {Rounding::rn, Rounding::rz, Rounding::rm, Rounding::rp,
                               Rounding::rna};

/// Doubles that matter to a format: its values, the middles between them, and both with a nudge.
std::vector<double> interesting(const SmallFormat& format, std::size_t step) {
  std::vector<double> result{0.0, -0.0, 1e-320, 5e-324, 1e308, 3.5e38, 1e-45};
  const std::vector<double> values = magnitudes(format);
  for (std::size_t i = 0; i + 1 < values.size(); i += i < 40 || i + 40 > values.size() ? 1 : step) {
    const double middle = (values[i] + values[i + 1]) / 2;
    for (const double x : {values[i], middle, values[i + 1]}) {
      for (const double y :
           {x, std::nextafter(x, 1e300), std::nextafter(x, -1e300), x * (1 + 1e-9)}) {
        result.push_back(y);
        result.push_back(-y);
      }
    }
  }
  return result;
}

template <typename F>
void check_format(const SmallFormat& format, std::size_t step) {
  const SmallRounder reference(format);
  long wrong = 0;
  for (const double x : interesting(format, step)) {
    for (const Rounding mode : kModes) {
      for (const bool satfinite : {false, true}) {
        const std::uint32_t expected = reference.round(Wide(x), mode, satfinite, std::signbit(x));
        wrong += encode<F>(x, mode, {.satfinite = satfinite}) != expected ? 1 : 0;
        const bool clipped = std::signbit(x);
        const std::uint64_t relu = encode<F>(x, mode, {.satfinite = satfinite, .relu = true});
        wrong += relu != (clipped ? 0 : expected) ? 1 : 0;
      }
    }
  }
  CHECK(wrong == 0);
}

template <typename F>
void check_decoding(const SmallFormat& format) {
  const std::uint32_t count = 1u << (format.sign_bit() + 1);
  for (std::uint32_t bits = 0; bits < count; ++bits) {
    const std::uint32_t magnitude = bits & (count / 2 - 1);
    const double value = decode<F>(bits);
    if (magnitude > format.largest) {
      const bool infinite = format.has_infinity && magnitude == format.largest + 1;
      CHECK((infinite ? std::isinf(value) : std::isnan(value)));
      continue;
    }
    REQUIRE(value == small_value(format, bits));
    REQUIRE(std::signbit(value) == (bits != magnitude));
    REQUIRE(encode<F>(value, Rounding::rn) == bits);
  }
}

}  // namespace

TEST_CASE("numeric: decoding of every small encoding") {
  check_decoding<F16>(kF16);
  check_decoding<BF16>(kBF16);
  check_decoding<E4M3>(kE4M3);
  check_decoding<E5M2>(kE5M2);
}

TEST_CASE("numeric: rounding in every mode") {
  check_format<F16>(kF16, 7);
  check_format<BF16>(kBF16, 7);
  check_format<E4M3>(kE4M3, 1);
  check_format<E5M2>(kE5M2, 1);
}

TEST_CASE("numeric: infinity and NaN") {
  const double infinity = HUGE_VAL;
  CHECK(encode<F16>(infinity, Rounding::rz) == 0x7c00);
  CHECK(encode<F16>(-infinity, Rounding::rn) == 0xfc00);
  CHECK(encode<F16>(infinity, Rounding::rn, {.satfinite = true}) == 0x7bff);
  CHECK(encode<F16>(-infinity, Rounding::rn, {.relu = true}) == 0);
  CHECK(encode<E4M3>(infinity, Rounding::rn) == 0x7e);
  CHECK(encode<F16>(NAN, Rounding::rn) == 0x7fff);
  CHECK(encode<BF16>(-NAN, Rounding::rn, {.relu = true}) == 0x7fff);
  CHECK(encode<F32>(NAN, Rounding::rn) == 0x7fffffff);
  CHECK(encode<TF32>(NAN, Rounding::rna) == 0x7fffe000);
  CHECK(encode<E5M2>(NAN, Rounding::rn, {.satfinite = true}) == 0x7f);
}

TEST_CASE("numeric: the fast halves equal the exact path") {
  long wrong = 0;
  const SmallRounder f16(kF16), bf16(kBF16);
  for (const double x : interesting(kF16, 3)) {
    const std::uint32_t expected = f16.round(Wide(x), Rounding::rn, false, std::signbit(x));
    wrong += f64_to_f16(x) != expected;
    const auto narrow = static_cast<float>(x);
    wrong += f32_to_f16(narrow) != encode<F16>(narrow, Rounding::rn);
  }
  for (const double x : interesting(kBF16, 3)) {
    const std::uint32_t expected = bf16.round(Wide(x), Rounding::rn, false, std::signbit(x));
    wrong += f64_to_bf16(x) != expected;
    const auto narrow = static_cast<float>(x);
    wrong += f32_to_bf16(narrow) != encode<BF16>(narrow, Rounding::rn);
  }
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double a = decode<F16>(bits), b = decode<BF16>(bits);
    wrong += a == a && static_cast<double>(f16_to_f32(half)) != a;
    wrong += b == b && static_cast<double>(bf16_to_f32(half)) != b;
    wrong += a != a && f16_to_f32(half) == f16_to_f32(half);
  }
  CHECK(f64_to_f16(NAN) == 0x7fff);
  CHECK(f32_to_f16(HUGE_VALF) == 0x7c00);
  CHECK(f64_to_bf16(-HUGE_VAL) == 0xff80);
  CHECK(f32_to_bf16(NAN) == 0x7fff);
  CHECK(wrong == 0);
}

TEST_CASE("numeric: f64 to f32 in every mode equals the host's rounding") {
  std::mt19937_64 random(3);
  const std::pair<Rounding, int> modes[] = {{Rounding::rn, FE_TONEAREST},
                                            {Rounding::rz, FE_TOWARDZERO},
                                            {Rounding::rm, FE_DOWNWARD},
                                            {Rounding::rp, FE_UPWARD}};
  for (const auto& [mode, host] : modes) {
    long wrong = 0;
    for (int i = 0; i < 20000; ++i) {
      volatile double x = std::bit_cast<double>(random());
      if (i % 2 == 0)
        x = std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), -64 - i % 150);
      if (std::isnan(x)) continue;
      std::fesetround(host);
      volatile float expected = static_cast<float>(x);
      std::fesetround(FE_TONEAREST);
      const float stored = expected;
      wrong += encode<F32>(x, mode) != std::bit_cast<std::uint32_t>(stored);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("numeric: integers to floating point, exactly rounded") {
  std::mt19937_64 random(5);
  const SmallRounder f16(kF16), bf16(kBF16);
  long wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t magnitude = random() >> (random() % 64);
    const bool negative = (random() & 1) != 0 && magnitude != 0;
    const Wide x = negative ? -Wide(magnitude) : Wide(magnitude);
    for (const Rounding mode : kModes) {
      wrong += encode_integer<F16>(negative, magnitude, mode) != f16.round(x, mode, false);
      wrong += encode_integer<BF16>(negative, magnitude, mode) != bf16.round(x, mode, false);
    }
    const double nearest =
        negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
    wrong += encode_integer<F64>(negative, magnitude, Rounding::rn) !=
             std::bit_cast<std::uint64_t>(nearest);
  }
  CHECK(wrong == 0);
}

TEST_CASE("numeric: floating point to integers clamps and maps NaN") {
  CHECK(to_integer<std::int32_t, false>(3e9f) == 0x7fffffff);
  CHECK(to_integer<std::int32_t, false>(-3e9f) == std::numeric_limits<std::int32_t>::min());
  CHECK(to_integer<std::uint32_t, false>(-1.0f) == 0);
  CHECK(to_integer<std::uint32_t, false>(4294967040.0f) == 4294967040u);
  CHECK(to_integer<std::uint32_t, false>(4294967296.0f) == 4294967295u);
  CHECK(to_integer<std::uint64_t, true>(1.8446744073709552e19) == ~std::uint64_t{0});
  CHECK(to_integer<std::int64_t, true>(-9.3e18) == std::numeric_limits<std::int64_t>::min());
  CHECK(to_integer<std::int8_t, false>(200.0f) == 127);
  CHECK(to_integer<std::uint8_t, false>(-3.0f) == 0);
  CHECK(to_integer<std::int32_t, false>(NAN) == 0);
  CHECK(to_integer<std::int32_t, true>(double{NAN}) == std::numeric_limits<std::int32_t>::min());
  CHECK(to_integer<std::uint64_t, false>(NAN) == std::uint64_t{1} << 63);
  CHECK(round_integral<Rounding::rni>(2.5f) == 2.0f);
  CHECK(round_integral<Rounding::rni>(-3.5) == -4.0);
  CHECK(round_integral<Rounding::rzi>(-2.7) == -2.0);
  CHECK(round_integral<Rounding::rmi>(-2.1f) == -3.0f);
  CHECK(round_integral<Rounding::rpi>(2.1) == 3.0);
}

TEST_CASE("numeric: tf32 keeps ten bits and rounds ties away") {
  const auto tf32 = [](std::uint32_t bits) { return f32_to_tf32(std::bit_cast<float>(bits)); };
  CHECK(tf32(0x3f800000) == 0x3f800000);
  CHECK(tf32(0x3f800fff) == 0x3f800000);
  CHECK(tf32(0x3f801000) == 0x3f802000);
  CHECK(tf32(0xbf801000) == 0xbf802000);
  CHECK(tf32(0x7f7fffff) == 0x7f800000);
  CHECK(tf32(0x7f800000) == 0x7f800000);
  CHECK(tf32(0x7f800001) == 0x7f800000);
  CHECK(tf32(0xffc12345) == 0xffc12000);
  CHECK(tf32(0x7fffffff) == 0x7fffe000);
  CHECK(encode<TF32>(std::bit_cast<float>(0x7f7fffffu), Rounding::rna, {.satfinite = true}) ==
        0x7f7fe000);
}

TEST_CASE("numeric: a fused sum rounded to odd keeps what a later rounding needs") {
  // The product lies in the middle of two bf16 numbers; the sum's third part decides.
  const double product = 1.0 + 0x1p-8;
  CHECK(f64_to_bf16(fused_to_odd(product, 1, 0)) == 0x3f80);
  CHECK(f64_to_bf16(fused_to_odd(product, 1, 0x1p-120)) == 0x3f81);
  CHECK(f64_to_bf16(fused_to_odd(product, 1, -0x1p-120)) == 0x3f80);
  CHECK(f64_to_bf16(fused_to_odd(-product, 1, -0x1p-120)) == 0xbf81);
  CHECK(std::isnan(fused_to_odd(HUGE_VAL, 1, -HUGE_VAL)));
  CHECK(fused_to_odd(HUGE_VAL, 1, 1) == HUGE_VAL);
}
