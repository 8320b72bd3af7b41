// Comparison of results, and elements of every type, against values known from their definitions.
#include "tune/judge/comparison.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "base/errors.h"
#include "unit/tune/judge/host_arrays.h"

using namespace kernwright;
using test::doubles;
using test::floats;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr float kNanFloat = std::numeric_limits<float>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

bool right(float got, double expected, Tolerance tolerance) {
  return !compare(floats({got}), doubles({expected}), tolerance);
}

template <typename T>
double number(ScalarType dtype, T bits) {
  return element_as_double(dtype, reinterpret_cast<const std::byte*>(&bits));
}

}  // namespace

TEST_CASE("comparison: tolerances are those of NumPy's allclose") {
  CHECK(right(1.0F, 1.0, {}));
  CHECK(right(1.1F, 1.0, {0, 0.11}));
  CHECK_FALSE(right(1.1F, 1.0, {0, 0.09}));
  CHECK(right(110, 100, {0.1, 1e-3}));
  CHECK_FALSE(right(110, 100, {0.09, 1e-3}));
  CHECK(right(-110, -100, {0.11, 0}));
  CHECK_FALSE(right(-100, 100, {0.5, 0}));
}

TEST_CASE("comparison: the tolerances of a task without any") {
  const Tolerance single = default_tolerance(ScalarType::float32);
  CHECK(right(1.0F, 1.0, single));
  CHECK(right(1.00001F, 1.0, single));
  CHECK_FALSE(right(1.00005F, 1.0, single));
  CHECK_FALSE(right(1.0F, 1.00005, single));
  CHECK(right(1000.001F, 1000.0, single));
  CHECK_FALSE(right(1000.01F, 1000.0, single));
  const auto exact = default_tolerance(ScalarType::int32);
  CHECK(exact.relative == 0);
  CHECK(exact.absolute == 0);
}

TEST_CASE("comparison: a bool is the byte 0 or 1") {
  const auto bools = [](std::vector<std::uint8_t> bytes) {
    return HostValue::from(ScalarType::boolean, bytes);
  };
  CHECK_FALSE(compare(bools({0, 1, 1}), bools({0, 1, 1}), {}));
  for (const std::uint8_t byte : {2, 128, 255}) {
    const auto different = compare(bools({0, byte, 1}), bools({0, 1, 1}), {});
    REQUIRE(different);
    CHECK(different->index == 1);
    CHECK(different->count == 1);
    CHECK(different->got == "the byte " + std::to_string(byte));
    CHECK(different->expected == "True");
    CHECK(compare(bools({byte}), doubles({1}), {0.5, 0.5}));
  }
}

TEST_CASE("comparison: what is not finite") {
  const Tolerance some{1e-3, 1e-3};
  const auto nan = static_cast<float>(kNan);
  const auto inf = static_cast<float>(kInf);
  CHECK(right(nan, kNan, some));
  CHECK_FALSE(right(nan, 0, some));
  CHECK_FALSE(right(0, kNan, some));
  CHECK(right(inf, kInf, some));
  CHECK_FALSE(right(-inf, kInf, some));
  CHECK_FALSE(right(inf, 1, some));
  CHECK_FALSE(right(1e30F, kInf, some));
  CHECK_MESSAGE(right(inf, 1e39, some), "beyond the range of float32");
  CHECK_FALSE(right(-inf, 1e39, some));
  CHECK_FALSE(right(1, 1e39, some));
}

TEST_CASE("comparison: denormal numbers may be flushed where a relative error is allowed") {
  CHECK(right(0, 1e-39, {1e-6, 0}));
  CHECK_FALSE(right(0, 1e-37, {1e-6, 0}));
  CHECK_FALSE(right(0, 1e-39, {}));
}

TEST_CASE("comparison: integers of 64 bits are compared exactly") {
  const std::int64_t big = (std::int64_t{1} << 60) + 1;
  const auto signed_of = [](std::int64_t v) {
    return HostValue::from(ScalarType::int64, std::vector<std::int64_t>{v});
  };
  CHECK(!compare(signed_of(big), signed_of(big), {}));
  CHECK(compare(signed_of(big), signed_of(big - 1), {}).has_value());
  CHECK_FALSE_MESSAGE(compare(signed_of(big), signed_of(big - 1), {0, 2}).has_value(),
                      "with a tolerance");
  const auto unsigned_of = [](std::uint64_t v) {
    return HostValue::from(ScalarType::uint64, std::vector<std::uint64_t>{v});
  };
  CHECK(compare(signed_of(-1), unsigned_of(~std::uint64_t{0}), {}).has_value());
  CHECK(!compare(signed_of(7), unsigned_of(7), {}));
  const auto narrow = HostValue::from(ScalarType::int8, std::vector<std::int8_t>{-3});
  CHECK(!compare(narrow, signed_of(-3), {}));
}

TEST_CASE("comparison: it tells the first wrong element and how many there are") {
  HostValue got = floats({1, 2, 3, 4, 5, 6});
  HostValue expected = doubles({1, 2, 3, 4.5, 5, 8});
  got.shape = expected.shape = {2, 3};
  const auto found = compare(got, expected, {});
  REQUIRE(found);
  CHECK(found->index == 3);
  CHECK(found->place == "[1, 0]");
  CHECK(found->got == "4");
  CHECK(found->expected == "4.5");
  CHECK(found->count == 2);
  CHECK(found->elements == 6);
  CHECK(found->largest_error == 2);
  CHECK(found->to_string() == "[1, 0] is 4, expected 4.5 (2 of 6 elements differ, by at most 2)");
  CHECK_THROWS_AS(compare(got, doubles({1, 2}), {}), InvalidArgument);
  CHECK(!compare(floats({}), doubles({}), {}));
}

TEST_CASE("comparison: what has no size is counted apart from the largest error") {
  const auto all = compare(floats({1, kNanFloat, kNanFloat}), doubles({kInf, 1, 2}), {});
  REQUIRE(all);
  CHECK(all->not_finite == 3);
  CHECK(all->to_string() ==
        "[0] is 1, expected inf (3 of 3 elements differ, all by NaN or infinity)");
  const auto some = compare(floats({1, kNanFloat, 3}), doubles({1, 1, 2}), {});
  REQUIRE(some);
  CHECK(some->not_finite == 1);
  CHECK(some->to_string() ==
        "[1] is nan, expected 1 (2 of 3 elements differ: 1 by NaN or infinity, the others by at "
        "most 1)");
  CHECK(compare(floats({1, 2}), doubles({2, 4}), {})->not_finite == 0);
}

TEST_CASE("comparison: integers that are alike as doubles have their error") {
  constexpr std::int64_t kBig = std::int64_t{1} << 53;
  const auto of = [](std::vector<std::int64_t> values) {
    return HostValue::from(ScalarType::int64, values);
  };
  const auto found = compare(of({kBig + 1, 7}), of({kBig, 7}), {});
  REQUIRE(found);
  CHECK(found->count == 1);
  CHECK(found->largest_error == 1);
}

TEST_CASE("comparison: complex numbers by their parts") {
  const auto complex_of = [](std::vector<float> parts) {
    return HostValue::make_array(ScalarType::complex64, {1}, std::as_bytes(std::span(parts)));
  };
  CHECK(!compare(complex_of({1, 2}), complex_of({1, 2}), {}));
  const auto found = compare(complex_of({1, 2}), complex_of({1, 3}), {});
  REQUIRE(found);
  CHECK(found->got == "(1+2j)");
  CHECK(compare(complex_of({1, 2}), doubles({1}), {}).has_value());
}

TEST_CASE("host value: the elements of small floats") {
  using U16 = std::uint16_t;
  using U8 = std::uint8_t;
  CHECK(number(ScalarType::float16, U16{0x3c00}) == 1);
  CHECK(number(ScalarType::float16, U16{0x7bff}) == 65504);
  CHECK(number(ScalarType::float16, U16{0x0001}) == std::ldexp(1, -24));
  CHECK(number(ScalarType::float16, U16{0xfc00}) == -kInf);
  CHECK(std::isnan(number(ScalarType::float16, U16{0x7e00})));
  CHECK(number(ScalarType::bfloat16, U16{0x3f80}) == 1);
  CHECK(number(ScalarType::bfloat16, U16{0xc040}) == -3);
  CHECK(number(ScalarType::float8_e4m3fn, U8{0x7e}) == 448);
  CHECK(std::isnan(number(ScalarType::float8_e4m3fn, U8{0x7f})));
  CHECK(number(ScalarType::float8_e4m3fn, U8{0x01}) == std::ldexp(1, -9));
  CHECK(number(ScalarType::float8_e5m2, U8{0x7b}) == 57344);
  CHECK(number(ScalarType::float8_e5m2, U8{0x7c}) == kInf);
}

TEST_CASE("host value: sizes must fit, and NaN is found") {
  const std::vector<float> two{1, static_cast<float>(kNan)};
  CHECK_THROWS_AS(HostValue::make_array(ScalarType::float32, {3}, std::as_bytes(std::span(two))),
                  InvalidArgument);
  CHECK(first_nan(floats(two)) == 1);
  CHECK(!first_nan(floats({1, static_cast<float>(kInf)})));
  CHECK(first_not_finite(floats({1, static_cast<float>(kInf)})) == 1);
  CHECK(!first_nan(HostValue::make_integer(3)));
  CHECK(HostValue::make_array(ScalarType::float32, {}, std::as_bytes(std::span(two).first(1)))
            .elements() == 1);
  CHECK(floats(two).to_string() == "float32[2]");
  CHECK(index_text(std::vector<std::int64_t>{2, 3, 4}, 17) == "[1, 1, 1]");
}
